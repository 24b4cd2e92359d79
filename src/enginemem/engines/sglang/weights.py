"""Bytes of the parameters on one GPU."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.architecture import Architecture
from enginemem.memo import per_model
from enginemem.tensors import HeldBytes, held_bytes, narrowed, piece

WIDE = 2
"""Bytes of a 16-bit parameter."""


class Weights(NamedTuple):
    """Bytes on one GPU: what the checkpoint's tensors take, and the 16-bit copies that latent attention keeps of its
    projection up from the latent row."""

    held: HeldBytes
    copies: int

    @property
    def total(self) -> int:
        """All parameters and copies."""
        return self.held.total + self.copies


def weights(model: Architecture, *, tp: int, weight_dtype: str, vocabulary_multiple: int) -> Weights:
    """Weights of one of `tp` GPUs; `weight_dtype` fp8 stores the layers' matrices in one byte, without their scales.

    The vocabulary is padded to `vocabulary_multiple` (vocab_parallel_embedding.py). What the engine really measures is
    the drop of free memory, which includes rounding by the allocator.
    """
    held = held_bytes(model.inventory, tp=tp, vocabulary_multiple=vocabulary_multiple, linear=narrowed(weight_dtype))
    return Weights(held, latent_copies(model, tp=tp))


@per_model
def latent_copies(model: Architecture, *, tp: int) -> int:
    """Bytes of w_kc and w_vc, derived from kv_b_proj and kept beside it in 16 bits (deepseek_weight_loader.py)."""
    total = 0
    for block in model.inventory.kinds:
        for tensor in block.tensors:
            if tensor.name.endswith(".kv_b_proj"):
                rows, columns, _ = piece(tensor, tp=tp, vocabulary_multiple=1)
                total += block.layers * rows * columns * WIDE
    return total
