"""Recurrent layers: the state that each keeps for a request, and the block size that they force on attention layers.

A state is stored in the pool's pages like KV blocks, so the attention block grows until its page holds the largest
state. Source rules: `MambaStateShapeCalculator`, `MambaStateDtypeCalculator` and `Platform._align_hybrid_block_size`
at 0.32.0.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from enginemem.architecture import Architecture, Recurrent
from enginemem.engines.vllm.layout import ELEMENT_BYTES, KvRow, page_bytes, token_bytes
from enginemem.units import ceil_div

KERNEL_BLOCK, LATENT_BLOCK = 16, 128
"""The smallest block, tokens, that the alignment of dense and of latent attention starts from."""

WIDE_STATES = ("kda",)
"""Mixers whose recurrent state is kept in 32 bits whatever the configuration says."""


class States(NamedTuple):
    """Shapes and element types of one layer's states on one GPU."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]


def state_tensors(state: Recurrent, *, tp: int, family: str) -> States:
    """The convolution and the recurrent state of one layer on one of `tp` GPUs.

    Groups are copied once there are more GPUs than groups. The convolution has the model's type; the recurrent state
    too, unless the family or its configuration keeps 32 bits.
    """
    groups = 2 * max(1, state.groups // tp) * state.group_width
    own = state.channels - 2 * state.groups * state.group_width
    convolution = (state.kernel - 1, own // tp + groups)
    recurrent: tuple[int, ...] = (state.heads // tp, state.rows, state.columns)
    if state.mixer == "mamba1":
        recurrent = (state.heads // tp, state.columns)
    dtype = state.dtype or "bf16"
    if family == "Qwen3-Next":
        dtype = "bf16"  # only Qwen3.5 reads the type from its configuration
    if state.mixer in WIDE_STATES or (family == "Nemotron-H" and state.dtype is None):
        dtype = "fp32"
    return States((convolution, recurrent), ("bf16", dtype))


def state_row(state: Recurrent, *, tp: int, family: str, layers: int) -> KvRow:
    """The row of recurrent layers before their page is aligned; Mamba-2 keeps one more block for a checkpoint of the
    prefill."""
    found = state_tensors(state, tp=tp, family=family)
    return KvRow(
        kind="mamba",
        block_size=KERNEL_BLOCK,
        n=layers,
        shapes=found.shapes,
        dtypes=found.dtypes,
        prefill_checkpoint_blocks=1 if state.mixer == "mamba2" else 0,
    )


def aligned_block(*, block_size: int, state: int, token: int, latent: bool) -> int:
    """Tokens a block so that an attention page of `token` bytes a token holds a state of `state` bytes."""
    step = max(KERNEL_BLOCK, block_size, LATENT_BLOCK if latent else 0)
    return max(block_size, step * ceil_div(state, step * token))


def with_states(rows: list[KvRow], *, block_size: int, max_model_len: int, cache_mode: str) -> list[KvRow]:
    """Rows of a hybrid with the aligned block size and the states padded to an attention page.

    In mode `align` a state covers a block, in mode `none` the whole request.
    """
    states = [row for row in rows if row.kind == "mamba"]
    others = [row for row in rows if row.kind != "mamba"]
    if not states or not others:
        return rows
    token = max([token_bytes(row) for row in others])
    largest = max([page_bytes(row) for row in {row._replace(n=1) for row in states}])
    latent = any(row.kind == "mla" for row in others)
    block = aligned_block(block_size=block_size, state=largest, token=token, latent=latent)
    covers = block if cache_mode == "align" else max_model_len
    return [
        row._replace(block_size=covers, page_size_padded=block * token, cache_mode=cache_mode)
        if row.kind == "mamba"
        else row._replace(block_size=block)
        for row in rows
    ]


def state_bytes(model: Architecture, *, tp: int) -> int:
    """Raw bytes of one request's states on one GPU, one copy, without padding."""
    total = 0
    for spec in model.layers:
        if spec.recurrent is not None:
            found = state_tensors(spec.recurrent, tp=tp, family=model.family)
            sizes = [
                prod(shape) * ELEMENT_BYTES[dtype] for shape, dtype in zip(found.shapes, found.dtypes, strict=True)
            ]
            total += spec.layers * sum(sizes)
    return total
