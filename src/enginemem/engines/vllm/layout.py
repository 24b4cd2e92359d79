"""What one layer and one request cost: pages, KV groups and blocks, per GPU.

A page is one block of one layer. Layers that need the same blocks share a block table and form a group; all groups draw
block ids from one pool. Source rules: `vllm/v1/kv_cache_interface.py` (spec classes) and
`vllm/v1/core/kv_cache_utils.py` (`get_kv_cache_groups`) at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

from enginemem.units import ceil_div

ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1, "uint8": 1}
"""Bytes of one element of the number formats that a cache can hold; nvfp4 rows have a size of their own."""

GROUP_KINDS = {
    "full": "full_attention",
    "sliding": "sliding_window",
    "chunked": "chunked_local_attention",
    "mla": "mla_attention",
    "mamba": "mamba",
}
"""The engine's names of the groups that a layer kind forms."""


class PagesCannotBeUnifiedError(ValueError):
    """Pages of different size that neither larger blocks nor padding bring together; the engine refuses to start."""


class KvRow(NamedTuple):
    """`n` consecutive layers with one KV cache spec on one GPU, after sharding; sizes in elements, `block_size` in
    tokens, `window` and `chunk` in tokens, everything ending in `_bytes` or `_padded` in bytes.

    `kind` is full, sliding, chunked, mla (one latent vector a token, no V) or mamba (any recurrent state). A sliding row
    with a `v_head_size` of 0 is latent too. One stored row stands for `tokens_per_state` tokens.
    """

    kind: str
    block_size: int
    n: int = 1
    kv_heads: int = 1
    head_size: int = 0
    dtype: str = "bf16"
    window: int | None = None
    chunk: int | None = None
    state_content_bytes: int | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    page_size_padded: int | None = None
    cache_mode: str = "align"
    prefill_checkpoint_blocks: int = 0
    speculative_blocks: int = 0
    v_head_size: int | None = None
    tokens_per_state: int = 1

    @classmethod
    def of(cls, **fields: Any) -> KvRow:
        """A row from plain JSON fields: lists become tuples, so that equal rows compare and hash as equal."""
        shapes = tuple([tuple(shape) for shape in fields.pop("shapes", ())])
        return cls(shapes=shapes, dtypes=tuple(fields.pop("dtypes", ())), **fields)


class KvGroup(NamedTuple):
    """Layers that share a block table: `layers` and `layer_bytes` (bytes of one block over them) by pipeline rank;
    `page_size_bytes` is one layer's page (the first layer's where they differ). `rows` are the group's distinct specs.
    """

    kind: str
    block_size: int
    page_size_bytes: int
    window: int | None
    layers: tuple[int, ...]
    layer_bytes: tuple[int, ...]
    rows: tuple[KvRow, ...]


def kv_heads_per_gpu(*, kv_heads: int, tp: int) -> int:
    """KV heads on one GPU: split over `tp`, replicated beyond the model's heads (`ModelConfig.get_num_kv_heads`)."""
    return max(1, kv_heads // tp)


def token_bytes(row: KvRow) -> int:
    """Bytes of one stored row of one attention layer, which is one token's unless it stands for several, before any
    padding (`AttentionSpec.state_content_size_bytes`)."""
    if row.state_content_bytes is not None:
        return row.kv_heads * row.state_content_bytes
    if row.kind == "mla":
        return row.kv_heads * row.head_size * ELEMENT_BYTES[row.dtype]
    width = row.head_size if row.v_head_size is None else row.v_head_size
    if row.dtype == "nvfp4":
        # Two 4-bit values a byte and one fp8 scale for every 16 values, for K and for V.
        return 2 * row.kv_heads * (row.head_size // 2 + row.head_size // 16)
    return row.kv_heads * (row.head_size + width) * ELEMENT_BYTES[row.dtype]


def page_bytes(row: KvRow) -> int:
    """Bytes of one block of one layer, padded if the spec says so (`KVCacheSpec.page_size_bytes`)."""
    if row.page_size_padded is not None:
        return row.page_size_padded
    if row.kind == "mamba":
        return sum([prod(shape) * ELEMENT_BYTES[dtype] for shape, dtype in zip(row.shapes, row.dtypes, strict=True)])
    return row.block_size // row.tokens_per_state * token_bytes(row)


def blocks_per_request(row: KvRow, *, tokens: int, in_flight: int, dcp: int = 1) -> int:
    """Blocks of one layer that a request of `tokens` tokens takes at most, the null block not counted.

    `in_flight` tokens may be scheduled and not yet settled; `dcp` is the decode context parallel size. A window costs
    one block more than its tokens, because it need not begin at a block boundary. Source: `max_memory_usage_bytes` and
    `max_admission_blocks_per_request` of each spec class.
    """
    if row.kind == "mamba":
        checkpoints = 1 + row.prefill_checkpoint_blocks if row.cache_mode == "align" else 0
        return 1 + row.speculative_blocks + checkpoints
    if row.kind == "sliding" and row.window is not None:
        return ceil_div(min(row.window - 1 + in_flight, tokens), row.block_size) + 1
    if row.kind == "chunked" and row.chunk is not None:
        return ceil_div(min(row.chunk + in_flight, tokens), row.block_size)
    return ceil_div(ceil_div(tokens, dcp), row.block_size)


def max_in_flight_tokens(*, pipeline_parallel: int, max_num_batched_tokens: int, extra_batches: int) -> int:
    """Tokens scheduled and not settled: one batch a pipeline stage, and `extra_batches` with asynchronous scheduling
    (`VllmConfig.max_in_flight_tokens`)."""
    return (pipeline_parallel + extra_batches) * max_num_batched_tokens


def one_type(rows: Sequence[KvRow]) -> bool:
    """Whether all specs need the same blocks, so that one group holds them (`UniformTypeKVCacheSpecs`)."""
    first, kinds = rows[0], {row.kind for row in rows}
    if len({row.block_size for row in rows}) > 1:
        return False
    if kinds <= {"full", "mla"}:
        return True
    if len(kinds) > 1:
        return False
    if first.kind == "mamba":
        fields = {(page_bytes(row), row.speculative_blocks, row.prefill_checkpoint_blocks) for row in rows}
        return len(fields) == 1
    return len({(row.window, row.chunk) for row in rows}) == 1


def promoted(rows: Sequence[KvRow]) -> dict[KvRow, KvRow]:
    """Every spec sized as full attention, local ones with the full layers' block size
    (`_promote_local_kv_cache_specs`); raises PagesCannotBeUnifiedError when they still do not match."""
    if one_type(rows):
        return {row: row for row in rows}
    full_sizes = {row.block_size for row in rows if row.kind in ("full", "mla")}
    block = full_sizes.pop() if len(full_sizes) == 1 else None
    result = {}
    for row in rows:
        local = row.kind in ("sliding", "chunked")
        result[row] = row._replace(kind="full", block_size=block or row.block_size) if local else row
    if not one_type(list(result.values())):
        raise PagesCannotBeUnifiedError("the layers' caches do not become one type as full attention")
    return result


def unified(rows: Sequence[KvRow]) -> dict[KvRow, KvRow]:
    """Specs brought to one page size: smaller attention pages take larger blocks or padding, states take padding
    (`unify_kv_cache_spec_page_size`). Raises PagesCannotBeUnifiedError for a latent page that does not divide."""
    largest = max([page_bytes(row) for row in rows])
    result = {}
    for row in rows:
        page = page_bytes(row)
        if page == largest:
            result[row] = row
        elif row.kind != "mamba" and largest % page == 0:
            padded = None if row.page_size_padded is None else largest
            result[row] = row._replace(block_size=row.block_size * (largest // page), page_size_padded=padded)
        elif row.kind != "mla":
            result[row] = row._replace(page_size_padded=largest)
        else:
            raise PagesCannotBeUnifiedError(f"a latent page of {page} bytes does not divide {largest} bytes")
    return result


def counted(rows: Iterable[KvRow]) -> dict[KvRow, int]:
    """How often each row occurs, in order of first appearance."""
    counts: dict[KvRow, int] = {}
    for row in rows:
        counts[row] = counts.get(row, 0) + 1
    return counts


Layer = tuple[int, KvRow]


def _group_kind(row: KvRow) -> str:
    latent_window = row.kind == "sliding" and row.v_head_size == 0
    return "sliding_window_mla" if latent_window else GROUP_KINDS[row.kind]


def single_group(layers: Sequence[Layer], counts: Sequence[int], ranks: int) -> KvGroup:
    """All of `layers`, each so many times, as one group (`UniformTypeKVCacheSpecs`)."""
    rows = tuple(dict.fromkeys([row for _, row in layers]))
    kinds = {row.kind for row in rows}
    by_rank, bytes_by_rank = [0] * ranks, [0] * ranks
    for (rank, row), count in zip(layers, counts, strict=True):
        by_rank[rank] += count
        bytes_by_rank[rank] += count * page_bytes(row)
    first = rows[0]
    return KvGroup(
        kind=_group_kind(first) if len(kinds) == 1 else GROUP_KINDS["full"],
        block_size=first.block_size,
        page_size_bytes=page_bytes(first),
        # A promoted group notes the window that its layers have, although it is sized as full attention.
        window=next((row.window for row in rows if row.window is not None), None),
        layers=tuple(by_rank),
        layer_bytes=tuple(bytes_by_rank),
        rows=rows,
    )


def _buckets(layers: Sequence[Layer], counts: Sequence[int]) -> list[list[Layer]]:
    """Layers with the same spec, in order of first appearance; full-attention specs that differ only in a recorded
    window or chunk, of which a bucket has one at most, fall together."""
    by_row: dict[KvRow, list[Layer]] = {}
    for (rank, row), count in zip(layers, counts, strict=True):
        by_row.setdefault(row, []).extend([(rank, row)] * count)
    buckets: list[tuple[KvRow, set[tuple[int | None, int | None]], list[Layer]]] = []
    for row, members in by_row.items():
        plain, note = row, (row.window, row.chunk)
        if row.kind == "full":
            plain = row._replace(window=None, chunk=None)
        for other, notes, found in buckets:
            if other == plain and len((notes | {note}) - {(None, None)}) <= 1:
                notes.add(note)
                found.extend(members)
                break
        else:
            buckets.append((plain, {note}, list(members)))
    return [found for _, _, found in buckets]


def kv_groups(ranks: Sequence[Sequence[KvRow]], *, hybrid_manager: bool = True) -> list[KvGroup]:
    """The groups of a model whose layers lie on pipeline `ranks`, in the engine's order (`get_kv_cache_groups`).

    Without the hybrid manager local layers are sized as full attention. Raises PagesCannotBeUnifiedError when the
    engine refuses the combination.
    """
    layers = [(rank, row._replace(n=1)) for rank, rows in enumerate(ranks) for row in rows]
    counts = [row.n for rows in ranks for row in rows]
    distinct = list(dict.fromkeys([row for _, row in layers]))
    if not hybrid_manager:
        layers, distinct = _mapped(layers, promoted(distinct))
    if one_type(distinct):
        return [single_group(layers, counts, len(ranks))]
    try:
        layers, distinct = _mapped(layers, unified(distinct))
    except PagesCannotBeUnifiedError:
        kinds = {row.kind for row in distinct}
        if "mla" not in kinds or "sliding" not in kinds or "chunked" in kinds:
            raise
        return [single_group(_mapped(layers, promoted(distinct))[0], counts, len(ranks))]
    buckets = _buckets(layers, counts)
    sizes = [len(bucket) for bucket in buckets]
    # The smallest bucket sets the group size, unless the largest is so close that padding it costs less.
    size = max(sizes) if 2 * max(sizes) < 3 * min(sizes) else min(sizes)
    groups = []
    for bucket in buckets:
        split = ceil_div(len(bucket), size)
        # Every split-th layer, so that each pipeline rank keeps an even share of every group.
        groups += [single_group(bucket[i::split], [1] * len(bucket[i::split]), len(ranks)) for i in range(split)]
    return groups


def _mapped(layers: Sequence[Layer], rows: dict[KvRow, KvRow]) -> tuple[list[Layer], list[KvRow]]:
    return [(rank, rows[row]) for rank, row in layers], list(dict.fromkeys(rows.values()))
