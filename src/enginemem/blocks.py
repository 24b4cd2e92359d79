"""Matrices with a scale for each block of rows and columns: whether a cut over GPUs ends at one."""

from __future__ import annotations

from math import gcd

from enginemem.memo import per_model
from enginemem.tensors import Format, Inventory, Piece, Tensor, piece

LEAST_BLOCK = 32
"""Elements of the smallest block that scales of experts are spread to."""


def spread(tensor: Tensor, own: Piece, *, tp: int) -> Format:
    """The format of an expert's part whose cut does not end at a block of its scales: each scale is repeated for blocks
    small enough to fit, down to 32 elements; otherwise the tensor's own.

    Source rule: refine_fp8_moe_block_shape (fused_moe/oracle/fp8.py) at vLLM 0.32.0.
    """
    form = tensor.form
    if tensor.kind != "experts" or form.group_rows == 1 or not _uneven(tensor, own, tp=tp):
        return form
    step = gcd(form.group_rows, form.group, own.rows, own.columns)
    return form if step < LEAST_BLOCK else form._replace(group=step, group_rows=step)


def _uneven(tensor: Tensor, own: Piece, *, tp: int) -> tuple[int, int] | None:
    """The features of a part that do not end at a scale, and the features under one; None where they do."""
    form = tensor.form
    if tensor.split == "columns":
        return (own.columns, form.group) if tp > 1 and own.columns % form.group else None
    return (own.rows, form.group_rows) if own.rows % form.group_rows else None


_MERGED = ("qkv", "gate_up")


@per_model
def uneven_blocks(inventory: Inventory, *, tp: int, merged: bool, spreads: bool = False) -> str | None:
    """Why matrices with a scale for each block of rows and columns cannot be cut for `tp` GPUs, or None: every part has
    to end at a block.

    `merged` is whether that holds for matrices too that the engine keeps as one, then on one GPU too; `spreads` whether
    scales of experts are spread to smaller blocks. Source rules: validate_fp8_block_shape,
    validate_fp8_block_shape_moe (fp8_utils.py) and _maybe_allow_fp8_block_shape_mismatch (linear.py) at vLLM 0.32.0;
    validate_block_quant_shapes and Fp8MoEMethod (fp8.py) at SGLang 0.5.22.
    """
    for block in inventory.kinds:
        for tensor in block.tensors:
            form, fused = tensor.form, tensor.fused if tensor.kind != "experts" else ""
            if form.group_rows == 1 or tensor.split in ("whole", "vocabulary") or (fused and not merged):
                continue
            if tp == 1 and not (tensor.kind == "experts" or fused in _MERGED):
                continue
            if tensor.split == "heads" and fused not in _MERGED:
                continue
            own = piece(tensor, tp=tp, vocabulary_multiple=1)
            found = _uneven(tensor, own, tp=tp)
            if found is None or (spreads and spread(tensor, own, tp=tp) != form):
                continue
            gpus = f"one of {tp} GPUs" if tp > 1 else "one GPU"
            return f"the {found[0]:,} features of {tensor.name} on {gpus} are no multiple of the {found[1]:,} under one scale"
    return None
