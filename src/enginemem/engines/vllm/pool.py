"""The blocks and tokens that the KV cache's bytes hold, the start-up check, and the engine's log line.

Source rules: `vllm/v1/core/kv_cache_utils.py` (`get_kv_cache_configs`, `_check_enough_kv_cache_memory`,
`_auto_fit_max_model_len`, `update_kv_cache_capacity`, `resolve_kv_cache_block_sizes`) at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, lcm
from typing import Any, NamedTuple

from enginemem.engines.vllm.layout import KvGroup, KvRow, PagesCannotBeUnifiedError, blocks_per_request, kv_groups
from enginemem.units import GIB


class GroupBlocks(NamedTuple):
    """One group as the first pipeline rank sees it: layers, tokens a block, bytes of a layer's page, and the blocks
    that one request of the maximum length takes."""

    kind: str
    layers: int
    block_size: int
    page_size_bytes: int
    blocks_per_max_request: int
    window: int | None


class KvPool(NamedTuple):
    """A sized KV cache. Blocks count the null block, `usable_blocks` do not; bytes per GPU, `bytes_per_block` of the
    first rank; `max_concurrency` is how many requests of `max_model_len` the blocks hold."""

    num_blocks: int
    usable_blocks: int
    bytes_per_block: int
    kv_tokens_logged: int
    max_concurrency: float
    max_model_len: int
    max_in_flight_tokens: int
    scheduler_block_size: int
    hash_block_size: int
    kv_tensor_bytes_per_rank: list[int]
    groups: list[GroupBlocks]


class KvShortage(NamedTuple):
    """Why the engine does not start, with the figures that its message prints (GiB with two decimals).

    `kind` is no_available_memory, max_model_len_does_not_fit, cannot_auto_fit, page_sizes or dcp_with_sliding_window.
    `estimated_max_model_len` is the longest length that fits, None when none does.
    """

    kind: str
    max_model_len: int | None = None
    needed_GiB_printed: float | None = None  # noqa: N815 - the engine's unit
    available_GiB_printed: float | None = None  # noqa: N815 - the engine's unit
    estimated_max_model_len: int | None = None


def printed_gib(size: int) -> float:
    """Bytes as the engine prints them: GiB, a float rounded to two decimals (`format_gib`)."""
    return round(size / GIB, 2)


def blocks_for(groups: Sequence[KvGroup], *, tokens: int, in_flight: int, dcp: int = 1) -> int:
    """Blocks that one request of `tokens` tokens takes over all groups: each claims its own from the shared pool."""
    return sum([_group_blocks(group, tokens=tokens, in_flight=in_flight, dcp=dcp) for group in groups])


def _group_blocks(group: KvGroup, *, tokens: int, in_flight: int, dcp: int) -> int:
    return max([blocks_per_request(row, tokens=tokens, in_flight=in_flight, dcp=dcp) for row in group.rows])


def longest_fit(
    groups: Sequence[KvGroup], *, memory: int, block_bytes: int, longest: int, in_flight: int, dcp: int = 1
) -> int:
    """The longest request, at most `longest` tokens, whose blocks fit in `memory` bytes; 0 when one token does not
    (`_estimate_max_model_len_from_groups`)."""
    low, high = 0, longest
    while low < high:
        middle = (low + high + 1) // 2
        if block_bytes * blocks_for(groups, tokens=middle, in_flight=in_flight, dcp=dcp) <= memory:
            low = middle
        else:
            high = middle - 1
    return low


def shortage(
    groups: Sequence[KvGroup], *, memory: int, block_bytes: int, max_model_len: int, in_flight: int, dcp: int = 1
) -> KvShortage | None:
    """What keeps the engine from starting when `memory` bytes remain beside the null block, or None.

    Source: `_check_enough_kv_cache_memory`.
    """
    if memory <= 0:
        return KvShortage("no_available_memory")
    needed = block_bytes * blocks_for(groups, tokens=max_model_len, in_flight=in_flight, dcp=dcp)
    if needed <= memory:
        return None
    fits = longest_fit(
        groups, memory=memory, block_bytes=block_bytes, longest=max_model_len, in_flight=in_flight, dcp=dcp
    )
    return KvShortage(
        "max_model_len_does_not_fit", max_model_len, printed_gib(needed), printed_gib(memory), fits or None
    )


def prefix_block_sizes(groups: Sequence[KvGroup], *, dcp: int = 1, prefix_caching: bool = True) -> tuple[int, int]:
    """(scheduler block, hash block) in tokens: what prefix-cache hits align to, and what is hashed as one
    (`resolve_kv_cache_block_sizes`)."""
    sizes = [group.block_size * (1 if group.kind == "mamba" else dcp) for group in groups]
    whole = lcm(*sizes)
    fixed_states = any(row.kind == "mamba" and row.cache_mode != "align" for group in groups for row in group.rows)
    if len(groups) == 1 or not prefix_caching or fixed_states:
        return whole, whole
    return whole, gcd(*sizes)


def size_kv_cache(
    *,
    ranks: Sequence[Sequence[KvRow]],
    available_bytes: int | Sequence[int],
    max_model_len: int,
    in_flight: int,
    decode_context_parallel: int = 1,
    num_gpu_blocks_override: int | None = None,
    auto_max_model_len: bool = False,
    prefix_caching: bool = True,
    hybrid_manager: bool = True,
) -> KvPool | KvShortage:
    """The KV cache of a model whose layers lie on pipeline `ranks`, or why the engine refuses to start.

    `available_bytes` is the memory of each rank's GPU (one number: the same for all), possibly negative; `in_flight`
    the tokens scheduled and not settled. Source: `get_kv_cache_configs`.
    """
    dcp = decode_context_parallel
    memory = [available_bytes] * len(ranks) if isinstance(available_bytes, int) else list(available_bytes)
    try:
        groups = kv_groups(ranks, hybrid_manager=hybrid_manager)
    except PagesCannotBeUnifiedError:
        return KvShortage("page_sizes")
    if dcp > 1 and any(row.kind == "sliding" for group in groups for row in group.rows):
        return KvShortage("dcp_with_sliding_window")
    block_bytes = [max([group.layer_bytes[rank] for group in groups]) for rank in range(len(ranks))]
    if num_gpu_blocks_override is not None:
        memory = [num_gpu_blocks_override * size for size in block_bytes]
    # One block of every rank is the null block, which no request ever holds.
    usable = [size - block for size, block in zip(memory, block_bytes, strict=True)]
    length = max_model_len
    if auto_max_model_len:
        for size, block in zip(usable, block_bytes, strict=True):
            fits = longest_fit(
                groups, memory=size, block_bytes=block, longest=max_model_len, in_flight=in_flight, dcp=dcp
            )
            length = min(length, fits)
        if length <= 0:
            return KvShortage("cannot_auto_fit")
    for size, block in zip(usable, block_bytes, strict=True):
        problem = shortage(groups, memory=size, block_bytes=block, max_model_len=length, in_flight=in_flight, dcp=dcp)
        if problem is not None:
            return problem
    num_blocks = min([size // block for size, block in zip(memory, block_bytes, strict=True)])
    return sized(
        groups,
        num_blocks=num_blocks,
        block_bytes=block_bytes,
        max_model_len=length,
        in_flight=in_flight,
        dcp=dcp,
        prefix_caching=prefix_caching,
    )


def sized(
    groups: Sequence[KvGroup],
    *,
    num_blocks: int,
    block_bytes: Sequence[int],
    max_model_len: int,
    in_flight: int,
    dcp: int = 1,
    prefix_caching: bool = True,
) -> KvPool:
    """The pool of `num_blocks` blocks with the capacity that the engine logs (`get_kv_cache_capacity`)."""
    blocks = [_group_blocks(group, tokens=max_model_len, in_flight=in_flight, dcp=dcp) for group in groups]
    concurrency = num_blocks / sum(blocks)
    scheduler_block, hash_block = prefix_block_sizes(groups, dcp=dcp, prefix_caching=prefix_caching)
    return KvPool(
        num_blocks=num_blocks,
        usable_blocks=num_blocks - 1,
        bytes_per_block=block_bytes[0],
        kv_tokens_logged=int(concurrency * max_model_len),
        max_concurrency=concurrency,
        max_model_len=max_model_len,
        max_in_flight_tokens=in_flight,
        scheduler_block_size=scheduler_block,
        hash_block_size=hash_block,
        kv_tensor_bytes_per_rank=[num_blocks * size for size in block_bytes],
        groups=[
            GroupBlocks(group.kind, group.layers[0], group.block_size, group.page_size_bytes, count, group.window)
            for group, count in zip(groups, blocks, strict=True)
        ],
    )


def log_line(*, tokens: int, max_model_len: int, concurrency: float) -> str:
    """The line that the engine logs at start-up (`update_kv_cache_capacity`)."""
    return (
        f"GPU KV cache size: {tokens:,} tokens, "
        f"Maximum concurrency for {max_model_len:,} tokens per request: {concurrency:.2f}x"
    )


def as_fields(pool: KvPool) -> dict[str, Any]:
    """The pool as nested plain dictionaries, for JSON and comparison."""
    return {**pool._asdict(), "groups": [group._asdict() for group in pool.groups]}
