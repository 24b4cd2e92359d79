"""The longest sequence that the engine serves of a model, and the rows of the rotary caches beside it.

Source rules: `_get_and_verify_max_len` in vllm/config/model.py, `derive_max_model_len_and_key` in
vllm/transformers_utils/model_arch_config_convertor.py, and the classes that `get_rope` in
vllm/model_executor/layers/rotary_embedding picks, at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil
from typing import NamedTuple

from enginemem.architecture import Architecture, Rope
from enginemem.units import Exact

LONG = ("longrope", "su")
YARN = ("yarn", "deepseek_yarn", "deepseek_llama_scaling")


class Length(NamedTuple):
    """What the model's own length comes from: `stated` tokens times `factor`; `default` is what is served where the user
    gives no length."""

    stated: int
    factor: float
    default: int

    @property
    def limit(self) -> int:
        """The longest that a user may ask for, tokens: whole tokens up to the product."""
        return int(self.stated * self.factor)


def stated_length(model: Architecture) -> int:
    """The smallest of the lengths in the file, or model_max_length where there is one (`derive_max_model_len_and_key`)."""
    others = dict(model.lengths)
    return others.get("model_max_length") or min([model.max_position, *others.values()])


def length_factor(model: Architecture, unscaled: Collection[str]) -> Exact:
    """The factor on the stated length: that of the last scaling whose type is not one of `unscaled`.

    Gemma 3's length is stated with its factor applied.
    """
    factor: Exact = 1
    for rope in model.ropes:
        if rope.part != "indexer" and rope.type not in unscaled and rope.factor != 1:
            factor = rope.factor
    return 1 if "gemma3" in model.model_type else factor


def model_length(model: Architecture, unscaled: Collection[str]) -> Length:
    """The model's length in the engine's own floating point.

    Without a request for more, LongRoPE models are served at the length of their first training where the file (or its
    class) states it outside of the scaling.
    """
    length = Length(stated_length(model), float(length_factor(model, unscaled)), 0)
    if model.original_max_position is not None and any(rope.type in LONG for rope in model.ropes):
        return length._replace(default=model.original_max_position)
    return length._replace(default=length.limit)


def rope_positions(rope: Rope) -> int:
    """Rows of a rotary cache: trained positions, stretched by linear scaling or by YaRN from its start, both beginnings
    of LongRoPE one after the other; dynamic scaling keeps the trained ones.

    The stretched ends are products of doubles, and `torch.arange` takes every whole number below them.
    """
    start = rope.positions if rope.original is None else rope.original
    if rope.type == "linear":
        return ceil(rope.positions * float(rope.factor))
    if rope.type in YARN:
        return ceil(start * float(rope.factor))
    if rope.type in LONG:
        return start + rope.positions
    return rope.positions
