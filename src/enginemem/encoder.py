"""Bytes of a vision encoder on one GPU: what is cut over the GPUs, and what each of them holds whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from enginemem.architecture import Vision
from enginemem.tensors import Inventory, Split, Tensor, held_bytes, splitting_problem

NARROWED = "In the checkpoint's types; an option that narrows matrices at load may reach it too: an estimate."
UNSIZED = "Without the vision encoder, whose size does not follow from this configuration."
AT_WORK = "the vision encoder at work"


class EncoderBytes(NamedTuple):
    """Bytes on one GPU: its part of what is cut, and copies of what is not."""

    cut: int
    copied: int

    @property
    def total(self) -> int:
        """Both."""
        return self.cut + self.copied


def as_cut(inventory: Inventory, cut: Callable[[Tensor], Split]) -> Inventory:
    """The tensors with the cuts that an engine's own rule gives them."""
    blocks = [
        block._replace(tensors=tuple([tensor._replace(split=cut(tensor)) for tensor in block.tensors]))
        for block in inventory.kinds
    ]
    outer = tuple([tensor._replace(split=cut(tensor)) for tensor in inventory.outer])
    return Inventory(outer, tuple(blocks), tuple(blocks))


def encoder_bytes(inventory: Inventory, *, tp: int, vocabulary_multiple: int) -> EncoderBytes:
    """What one of `tp` GPUs holds; learned positions of the `vocabulary` split are padded to the multiple first."""
    whole = as_part(inventory, cut=False)
    total = held_bytes(inventory, tp=tp, vocabulary_multiple=vocabulary_multiple).total
    copied = held_bytes(whole, tp=tp, vocabulary_multiple=vocabulary_multiple).total
    return EncoderBytes(total - copied, copied)


def as_part(inventory: Inventory, *, cut: bool) -> Inventory:
    """The tensors that are cut, or those that are not."""
    blocks = tuple(
        [
            block._replace(tensors=tuple([tensor for tensor in block.tensors if (tensor.split != "whole") is cut]))
            for block in inventory.kinds
        ]
    )
    return Inventory(tuple([tensor for tensor in inventory.outer if (tensor.split != "whole") is cut]), blocks, blocks)


def encoder_problem(inventory: Inventory, tp: int) -> str | None:
    """Why an encoder cannot be cut for `tp` GPUs, or None."""
    for tensors in (inventory.outer, *[block.tensors for block in inventory.kinds]):
        for tensor in tensors if tp > 1 else ():
            problem = splitting_problem(tensor, tp)
            if problem is not None:
                return f"the vision encoder has {problem}, which {tp} GPUs cannot share"
    return None


def sized(vision: Vision | None) -> bool:
    """Whether there is an encoder whose tensors are known."""
    return vision is not None and vision.parameters is not None
