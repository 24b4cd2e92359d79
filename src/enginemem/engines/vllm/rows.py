"""The KV rows of a model on one GPU: what each layer caches, after sharding, in layer order."""

from __future__ import annotations

from enginemem.architecture import Architecture, LayerSpec, Recurrent
from enginemem.derivation import NotModeled
from enginemem.engines.vllm.hybrid import state_row, with_states
from enginemem.engines.vllm.layout import KvRow, kv_heads_per_gpu

SCALED_ROW = 656
"""Bytes of a latent row with scales that sparse attention reads in an fp8 cache: 512 fp8 values, four fp32 scales and
64 16-bit rotary values."""

INDEX_BLOCK, INDEX_SCALE = 128, 4
"""Elements of an indexer's key under one scale, and bytes of the scale."""


def _attention_row(spec: LayerSpec, *, tp: int, dtype: str, block_size: int, sparse: bool) -> KvRow:
    latent = spec.kind == "mla"
    return KvRow(
        kind=spec.kind,
        block_size=block_size,
        n=spec.layers,
        kv_heads=1 if latent else kv_heads_per_gpu(kv_heads=spec.kv_heads, tp=tp),
        head_size=spec.head_size,
        dtype=dtype,
        window=spec.window,
        chunk=spec.chunk,
        state_content_bytes=SCALED_ROW if latent and sparse and dtype == "fp8" else None,
        v_head_size=None if latent or spec.v_head_size == spec.head_size else spec.v_head_size,
    )


def _index_row(spec: LayerSpec, block_size: int) -> KvRow:
    """The key of a sparse indexer, one a token, whole on every GPU: fp8 values with a scale for each 128 of them beside
    latent rows, 16-bit values beside keys and values (`MiniMaxM3IndexerCache.get_kv_cache_spec`)."""
    if spec.kind != "mla":
        return KvRow(kind="mla", block_size=block_size, n=spec.layers, kv_heads=1, head_size=spec.index_head)
    width = spec.index_head + spec.index_head // INDEX_BLOCK * INDEX_SCALE
    return KvRow(kind="mla", block_size=block_size, n=spec.layers, kv_heads=1, head_size=width, dtype="fp8")


def model_rows(
    model: Architecture,
    *,
    tp: int,
    dtype: str,
    block_size: int,
    max_model_len: int | None = None,
    cache_mode: str = "align",
) -> list[KvRow] | NotModeled:
    """The KV rows of a model on one of `tp` GPUs, with a cache of `dtype` in blocks of `block_size` tokens.

    `cache_mode` is how recurrent states are cached: `align` with prefix caching, `none` without.
    """
    rows: list[KvRow] = []
    sparse = any(spec.index_head for spec in model.layers)
    states: dict[Recurrent, KvRow] = {}
    for spec in model.layers:
        if spec.kind == "recurrent":
            if spec.recurrent is None:
                return NotModeled("recurrent layers whose mixer is not stated")
            if spec.recurrent not in states:
                states[spec.recurrent] = state_row(spec.recurrent, tp=tp, family=model.family, layers=1)
            rows.append(states[spec.recurrent]._replace(n=spec.layers))
        elif spec.kind != "none":
            if spec.index_head:
                rows.append(_index_row(spec, block_size))
            rows.append(_attention_row(spec, tp=tp, dtype=dtype, block_size=block_size, sparse=sparse))
    if not any(row.kind != "mamba" for row in rows):
        return NotModeled("models without attention layers")
    if dtype == "nvfp4" and any(row.kind == "mla" for row in rows):
        return NotModeled("an nvfp4 cache of latent rows or index keys: its layout is not known here")
    length = model.max_position if max_model_len is None else max_model_len
    return with_states(rows, block_size=block_size, max_model_len=length, cache_mode=cache_mode)
