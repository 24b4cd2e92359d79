"""The two parameters of a long request: bytes that each further token takes, and bytes that it holds whatever its length.

Every group's block takes the bytes of the widest group, so a group of fewer layers costs as much. Source rules: the
managers in `vllm/v1/core/single_type_kv_cache_manager.py` (`get_num_skipped_tokens`, `remove_skipped_blocks`) at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from enginemem.derivation import Derivation, Operand
from enginemem.engines.vllm.layout import KvRow
from enginemem.units import Exact, ceil_div


class Parameters(NamedTuple):
    """Bytes of the pool on one GPU: per token beyond every window, and per request."""

    per_token: Exact
    per_request: int


def fixed_blocks(row: KvRow) -> int:
    """Blocks of one group that a decoding request holds at most, however long it is; 0 where it keeps every token.

    A window may begin anywhere in a block, and its last block is open; a chunk begins at a block. A state takes one
    block, and a second for a step or two where a block ends, which is not counted.
    """
    if row.kind == "mamba":
        return 1
    if row.kind == "sliding" and row.window is not None:
        return ceil_div(row.window, row.block_size) + 1
    if row.kind == "chunked" and row.chunk is not None:
        return ceil_div(row.chunk, row.block_size)
    return 0


def parameters(counts: Mapping[KvRow, int], *, block_bytes: int) -> Parameters:
    """The two parameters of groups `counts` (each spec with the number of its groups) and blocks of `block_bytes`."""
    per_token, fixed = Fraction(0), 0
    for row, count in counts.items():
        if row.kind in ("full", "mla"):
            per_token += Fraction(count * block_bytes, row.block_size)
        fixed += count * fixed_blocks(row)
    exact: Exact = per_token.numerator if per_token.denominator == 1 else per_token
    return Parameters(exact, fixed * block_bytes)


def record_parameters(steps: Derivation, counts: Mapping[KvRow, int], *, block_bytes: int) -> Parameters:
    """Record both as steps."""
    found = parameters(counts, block_bytes=block_bytes)
    tokens, blocks = [], []
    per_token: dict[str, Operand] = {"block_bytes": (block_bytes, "bytes")}
    per_request: dict[str, Operand] = {"block_bytes": (block_bytes, "bytes")}
    for index, (row, count) in enumerate(counts.items()):
        groups, block = f"groups_{index}", f"block_{index}"
        held = fixed_blocks(row)
        own = per_request if held else per_token
        own[groups] = (count, "groups")
        if row.kind != "mamba":
            own[block] = (row.block_size, "tokens")
        if not held:
            tokens.append(f"Fraction({groups} * block_bytes, {block})")
        elif row.kind == "mamba":
            blocks.append(groups)
        else:
            own[f"reach_{index}"] = (row.window or row.chunk, "tokens")
            open_block = " + 1" if row.kind == "sliding" else ""
            blocks.append(f"{groups} * (ceil_div(reach_{index}, {block}){open_block})")
    steps.add(
        "layout.per_token",
        "Each further token of a long request",
        " + ".join(tokens) or "0 * block_bytes",
        found.per_token,
        "bytes",
        per_token,
        "page",
        "groups",
        note="Layers that keep the whole context only." if found.per_request else None,
    )
    steps.add(
        "layout.per_request",
        "A long request besides, whatever its length",
        f"({' + '.join(blocks)}) * block_bytes" if blocks else "0 * block_bytes",
        found.per_request,
        "bytes",
        per_request,
        "blocks_per_request",
        note="At most, while it decodes: windows with an open block, a chunk, one state a group." if blocks else None,
    )
    return found
