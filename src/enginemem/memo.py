"""Results remembered for the facts of a model: a comparison asks the same of them in every scenario."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Facts = TypeVar("Facts")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")

MOST = 512
"""Results that one function remembers; the oldest goes first."""


def per_model(function: Callable[Concatenate[Facts, Rest], Result]) -> Callable[Concatenate[Facts, Rest], Result]:
    """`function`, whose results are remembered by the identity of its first argument and the values of the others.

    For pure functions of a model, or of an immutable part of one: hashing a model with all its tensors costs more than
    most of the answers. The entry keeps its model, so that no other can take its identity. The other arguments must be
    hashable, and callers must not change a result.
    """
    known: dict[Any, tuple[Facts, Result]] = {}

    @wraps(function)
    def remembered(facts: Facts, /, *args: Rest.args, **others: Rest.kwargs) -> Result:
        key = (id(facts), args, *others.items())
        entry = known.get(key)
        if entry is not None and entry[0] is facts:
            return entry[1]
        result = function(facts, *args, **others)
        if len(known) >= MOST:
            known.pop(next(iter(known)), None)
        known[key] = (facts, result)
        return result

    return remembered
