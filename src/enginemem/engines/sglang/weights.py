"""Bytes of the parameters on one GPU."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.architecture import Architecture

WIDE = 2
"""Bytes of a 16-bit parameter."""


class Weights(NamedTuple):
    """Parameters and bytes on one GPU: the matrices of the layers, and all that stays in 16 bits."""

    linear: int
    other: int
    linear_bytes: int

    @property
    def total(self) -> int:
        """Bytes of all parameters."""
        return self.linear * self.linear_bytes + self.other * WIDE


def weights(model: Architecture, *, tp: int, fp8: bool, vocabulary_multiple: int) -> Weights:
    """Weights of one of `tp` GPUs; `fp8` stores the layers' matrices in one byte, without counting their scales.

    The vocabulary is padded to `vocabulary_multiple` (vocab_parallel_embedding.py). What the engine really measures is
    the drop of free memory, which includes rounding by the allocator.
    """
    shard = model.shard(tp=tp, vocabulary_multiple=vocabulary_multiple)
    return Weights(shard.linear, shard.embedding + shard.head + shard.small, 1 if fp8 else WIDE)
