"""DeepSeek V4: the rows of its windows, of its compressed tokens, of their indexer and of the compressors' states.

Source rules: `DeepseekV4Attention.get_kv_cache_spec` and `DeepseekV4IndexerCache` in
`vllm/models/deepseek_v4/attention.py`, `CompressorStateCache` in `vllm/models/deepseek_v4/compressor.py`,
`DeepseekV4SWACache` in `vllm/v1/attention/backends/mla/sparse_swa.py` and `_select_dsv4_attn_cls` in
`vllm/models/deepseek_v4/nvidia/model.py` at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from enginemem.architecture import Architecture, LayerSpec
from enginemem.derivation import Derivation, NotModeled, Operand
from enginemem.engines.vllm.layout import KvGroup, KvRow, page_bytes, token_bytes
from enginemem.engines.vllm.run import not_modeled, refused
from enginemem.memo import per_model
from enginemem.release import EngineRelease
from enginemem.units import round_up

CACHE_TYPE = "fp8_ds_mla"
"""The engine's name of the only cache type that its default kernels take for this family."""

INDEX_SCALED, INDEX_SCALE = 128, 4
"""Elements of an index key under one scale, and bytes of the scale."""

OVERLAPPING = 4
"""Tokens under one row whose compressor joins two groups of them: its states are twice as wide and reach twice as far."""

FLOAT = "fp32"


@per_model
def is_compressed(model: Architecture) -> bool:
    """Whether some layers keep rows that stand for several tokens."""
    return any(spec.kind == "compressed" for spec in model.layers)


def compressed_backend(
    release: EngineRelease, *, capability: tuple[int, int], kv_dtype: str, block_size: int | None
) -> str:
    """The attention class's backend, by compute capability; raises StopPlan where none serves the scenario.

    `kv_dtype` is auto or what the user asked for, `block_size` in tokens (None: not given).
    """
    row = next((row for row in release.tables["compressed_backends"] if row["family"] == capability[0]), None)
    if row is None:
        raise not_modeled(
            f"DeepSeek V4 on compute capability {capability[0]}.{capability[1]}: neither of its attention backends "
            "lists it (supports_compute_capability in models/deepseek_v4)"
        )
    if kv_dtype not in ("auto", "fp8"):
        raise refused(
            f"a KV cache of type {kv_dtype}: DeepSeek V4's default kernels keep {CACHE_TYPE} rows only; leave the KV "
            "type at auto, or choose fp8"
        )
    only = release.integer("compressed_block_size")
    if block_size is not None and block_size != only:
        raise refused(f"DeepSeek V4's kernels take blocks of {only} tokens, not of {block_size}")
    name: str = row["name"]
    return name


class CompressedSizes(NamedTuple):
    """The release's sizes: tokens a block of rows and of windows, bytes of a stored row, the multiple that pages are
    padded to, and (tokens under one row, tokens a block) of the compressors' states."""

    block: int
    window_block: int
    row: int
    alignment: int
    state_blocks: tuple[tuple[int, int], ...]


def compressed_sizes(release: EngineRelease) -> CompressedSizes:
    """The sizes that the data of a release give."""
    return CompressedSizes(
        block=release.integer("compressed_block_size"),
        window_block=release.integer("compressed_window_block"),
        row=release.integer("compressed_row_bytes"),
        alignment=release.integer("compressed_page_alignment"),
        state_blocks=tuple([(row["tokens"], row["block"]) for row in release.tables["compressor_blocks"]]),
    )


def compressed_rows(model: Architecture, sizes: CompressedSizes) -> list[KvRow] | NotModeled:
    """The KV rows of a model on any of its GPUs, in the order in which its layers register them: nothing is split."""
    if not any(spec.index_head for spec in model.layers):
        return NotModeled("compressed layers without an indexer: the engine cannot bring their pages to one size")
    rows: list[KvRow] = []
    window = LayerSpec("none", 0, 0, 0, 0)
    for place, spec in enumerate(model.layers):
        if spec.kind == "sliding":
            window = spec
            following = model.layers[place + 1].kind if place + 1 < len(model.layers) else ""
            # A layer that compresses registers its indexer before its window.
            own = spec.layers - (following == "compressed")
            rows += [_window(spec, sizes)._replace(n=own)] if own else []
        elif spec.kind == "compressed" and spec.layers == 1 and spec.tokens in dict(sizes.state_blocks):
            if spec.index_head:
                rows += [_index(spec, sizes), _state(spec.index_head, spec.tokens, sizes)]
            rows += [_window(window, sizes), _entry(spec, sizes), _state(spec.head_size, spec.tokens, sizes)]
        else:
            return NotModeled(f"{spec.layers} layers of kind {spec.kind} with a row for {spec.tokens} tokens")
    return rows


def _padded(row: KvRow, sizes: CompressedSizes) -> KvRow:
    page = page_bytes(row)
    padded = round_up(page, sizes.alignment)
    return row if padded == page else row._replace(page_size_padded=padded)


def _window(spec: LayerSpec, sizes: CompressedSizes) -> KvRow:
    row = KvRow("sliding", sizes.window_block, head_size=spec.head_size, dtype="uint8", window=spec.window)
    return _padded(row._replace(state_content_bytes=sizes.row, v_head_size=0), sizes)


def _entry(spec: LayerSpec, sizes: CompressedSizes) -> KvRow:
    row = KvRow("mla", sizes.block, head_size=spec.head_size, dtype="uint8", tokens_per_state=spec.tokens)
    return _padded(row._replace(state_content_bytes=sizes.row), sizes)


def _index(spec: LayerSpec, sizes: CompressedSizes) -> KvRow:
    width = spec.index_head + spec.index_head // INDEX_SCALED * INDEX_SCALE
    return _padded(KvRow("mla", sizes.block, head_size=width, dtype="uint8", tokens_per_state=spec.tokens), sizes)


def _state(head: int, tokens: int, sizes: CompressedSizes) -> KvRow:
    """Two vectors a token, of its key and of its score, in 32 bits, for the tokens that are not one row yet."""
    joined = 2 if tokens == OVERLAPPING else 1
    row = KvRow("sliding", dict(sizes.state_blocks)[tokens], head_size=2 * joined * head, dtype="fp32")
    return _padded(row._replace(window=joined * tokens, v_head_size=0), sizes)


def role_of(row: KvRow) -> str:
    """What a row is, for a label: window rows, compressed rows, index keys, or the states of a compressor."""
    if row.kind == "sliding":
        return (
            "window rows"
            if row.state_content_bytes is not None
            else f"states of a compressor, {row.window} tokens of {token_bytes(row):,} bytes"
        )
    kind = "index keys" if row.state_content_bytes is None else "rows"
    return f"{kind} for {row.tokens_per_state} tokens each"


def record_packed_bytes(
    steps: Derivation, groups: Sequence[KvGroup], merged: Sequence[KvRow], sizes: CompressedSizes
) -> None:
    """Record the page of every kind of row, and the bytes of one block: those of the widest group. `merged` are all
    rows with the number of their layers."""
    layers_of = {row._replace(n=1): row.n for row in merged}
    rows = list(layers_of)
    for index, row in enumerate(rows):
        steps.add(
            f"layout.page_{index}",
            f"Page of {role_of(row)}",
            "ceil_div(block // tokens * row, alignment) * alignment",
            page_bytes(row),
            "bytes",
            {
                "block": (row.block_size, "tokens"),
                "tokens": (row.tokens_per_state, "tokens"),
                "row": (token_bytes(row), "bytes"),
                "alignment": (sizes.alignment, "bytes"),
            },
            "compressor_states" if row.dtype == FLOAT else "compressed_window" if row.window else "compressed_rows",
            note="One block of one layer, padded; whole on every GPU.",
        )
    widest = max(groups, key=lambda group: group.layer_bytes[0])
    operands: dict[str, Operand] = {}
    for row in widest.rows:
        index = rows.index(row)
        # Groups of several kinds of rows hold every layer of each.
        layers = layers_of[row] if len(widest.rows) > 1 else widest.layers[0]
        operands[f"layers_{index}"] = (layers, "layers")
        operands[f"page_{index}"] = (page_bytes(row), "bytes")
    names = [name.removeprefix("layers_") for name in operands if name.startswith("layers_")]
    steps.add(
        "layout.block_bytes",
        "Bytes of one block",
        " + ".join([f"layers_{name} * page_{name}" for name in names]),
        widest.layer_bytes[0],
        "bytes",
        operands,
        "packed_groups",
        "packed_block",
        note=f"The widest of {len(groups)} KV groups that share the pool's blocks.",
    )
