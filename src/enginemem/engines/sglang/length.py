"""The context length that the engine derives, and the bytes of its rotary caches.

Source rules: `get_context_length` in python/sglang/srt/utils/hf_transformers/common.py and the classes that `get_rope` in
python/sglang/srt/layers/rotary_embedding/factory.py picks, at 0.5.22.
"""

from __future__ import annotations

from math import ceil

from enginemem.architecture import Architecture, Rope
from enginemem.units import Exact

LENGTHS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length")
"""Names that the engine asks before max_position_embeddings, in its order."""
LONG = ("longrope", "su")
NARROW = 2
"""Bytes of an element of LongRoPE's caches, which take the model's 16 bits."""


def stated_length(model: Architecture) -> int:
    """The first length in the file, in the engine's order of names, tokens."""
    others = dict(model.lengths)
    return next((others[name] for name in LENGTHS if name in others), model.max_position)


def context_factor(model: Architecture) -> Exact:
    """The factor on the stated length: that of a scaling without its original length.

    Scalings by kind of layer are nested where the engine does not look; Transformers fills in the original length of
    llama3, YaRN and LongRoPE.
    """
    rope = next((rope for rope in model.ropes if rope.part == "all"), None)
    if rope is None or rope.nested or rope.original is not None or rope.type == "llama3":
        return 1
    return rope.factor


def context_length(model: Architecture) -> int:
    """Tokens that the server takes of one request: whole tokens up to the product, a double."""
    factor = context_factor(model)
    return stated_length(model) if factor == 1 else int(float(factor) * stated_length(model))


def rotary_bytes(rope: Rope, *, element: int) -> int:
    """Bytes of one rotary cache of `element` bytes as its class makes it, before the engine extends short ones.

    LongRoPE keeps both of its caches and, besides, their concatenation.
    """
    start = rope.positions if rope.original is None else rope.original
    if rope.type in LONG:
        return 2 * (start + rope.positions) * rope.width * NARROW
    rows = rope.positions
    if rope.type == "linear":
        rows = ceil(rope.positions * float(rope.factor))
    elif rope.type in ("yarn", "deepseek_yarn"):
        rows = ceil(start * float(rope.factor))
    return rows * rope.width * element
