"""How a figure came about: steps that can be evaluated, with their operands, units and sources.

A step's expression is a Python expression over its operands; `evaluate` computes it, and a test does so for every step
over thousands of scenarios, so the text that people read and the code that ran cannot drift apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import CodeType
from typing import Any, Literal, NamedTuple

from enginemem.units import ceil_div, round_up

Value = int | float | Fraction | bool | str | None | tuple[int, ...]
Operand = tuple[Value, str]
Role = Literal["add", "subtract", "limit", "result"]
Kind = Literal["code", "bracketed", "document"]
Standing = Literal["measured", "source", "log", "unverified"]


class Source(NamedTuple):
    """Where a rule stands: a file and symbol of a pinned release (`code`), a text read in an older and a newer version
    around the tag (`bracketed`), or a document."""

    kind: Kind
    release: str
    file: str | None
    symbol: str | None
    lines: tuple[int, int] | None
    title: str | None
    url: str | None
    date: str
    standing: Standing


class Step(NamedTuple):
    """One line of a ledger. `id` is stable and dotted (`vllm.budget.requested`); `expression` evaluates to `value`."""

    id: str
    label: str
    expression: str
    operands: Mapping[str, Operand]
    value: Value
    unit: str
    role: Role
    sources: tuple[Source, ...]
    note: str | None = None


class NotModeled(NamedTuple):
    """A stage that cannot be modeled, and why. No stage ever guesses."""

    reason: str


class Derivation:
    """The steps of one engine's plan, in order, and their values by id.

    `prefix` is the engine's name in step ids; `sources` maps the keys of the release's data file to Source records.
    Steps are kept as plain tuples until somebody reads them: a plan whose ledger nobody opens does not pay for it.
    """

    __slots__ = ("_prefix", "_raw", "_sources", "_steps", "values")

    def __init__(self, prefix: str, sources: Mapping[str, Source]) -> None:
        self._prefix = prefix
        self._sources = sources
        self._raw: list[_Raw] = []
        self._steps: list[Step] = []
        self.values: dict[str, Value] = {}

    def add(
        self,
        step_id: str,
        label: str,
        expression: str,
        value: Value,
        unit: str,
        operands: Mapping[str, Operand],
        *sources: str | Source,
        role: Role = "result",
        note: str | None = None,
    ) -> None:
        """Append a step; `step_id` goes behind the engine's prefix, `sources` are keys of the release's data file, or
        Source records. An unknown key raises KeyError when the steps are read."""
        self.values[step_id] = value
        self._raw.append((step_id, label, expression, operands, value, unit, role, sources, note))

    @property
    def steps(self) -> list[Step]:
        """All steps so far, with full ids and resolved sources."""
        known = self._sources
        for step_id, label, expression, operands, value, unit, role, sources, note in self._raw[len(self._steps) :]:
            cited = tuple([known[source] if isinstance(source, str) else source for source in sources])
            full_id = f"{self._prefix}.{step_id}"
            self._steps.append(Step(full_id, label, expression, operands, value, unit, role, cited, note))
        return self._steps


_Raw = tuple[str, str, str, Mapping[str, Operand], Value, str, Role, tuple[str | Source, ...], str | None]


def clamp(value: float, low: float, high: float) -> float:
    """`value` held between `low` and `high`."""
    return max(low, min(high, value))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "int": int,
    "float": float,
    "Fraction": Fraction,
    "len": len,
    "ceil_div": ceil_div,
    "round_up": round_up,
    "clamp": clamp,
}
"""What an expression may call, besides the named rules that an engine offers (`RULES` in its package)."""


@lru_cache(maxsize=1024)
def _compiled(expression: str, step_id: str) -> CodeType:
    """The expression ready to run; expressions are constants of this package, so there are few of them."""
    return compile(expression, step_id, "eval")


def evaluate(step: Step, rules: Mapping[str, Callable[..., Any]] | None = None) -> Value:
    """The value of the step's expression at its operands.

    `rules` adds the engine's named rules (a capture list, the burst loop) to `FUNCTIONS`. Raises NameError when the
    expression uses a name that is neither an operand nor a function.
    """
    names: dict[str, Any] = {**FUNCTIONS, **(rules or {})}
    names.update({name: value for name, (value, _unit) in step.operands.items()})
    # The expressions are constants of this package, never user text; builtins are withheld all the same.
    result: Value = eval(_compiled(step.expression, step.id), {"__builtins__": {}}, names)
    return result


def check_ids(steps: Sequence[Step]) -> None:
    """Raise ValueError when two steps share an id: ids are anchors."""
    seen: set[str] = set()
    for step in steps:
        if step.id in seen:
            raise ValueError(f"step id {step.id} is used twice")
        seen.add(step.id)
