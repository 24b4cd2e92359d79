"""Blocks and tokens of the KV pool, and the size that the log prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from enginemem.architecture import LayerSpec
from enginemem.derivation import Derivation
from enginemem.engines.tensorrt_llm.budget import kv_budget_bytes
from enginemem.engines.tensorrt_llm.layout import (
    KvFormat,
    element_bytes,
    estimate_elements,
    pool_elements,
    printed_bytes,
)
from enginemem.engines.tensorrt_llm.resolve import Configuration
from enginemem.units import GIB, Exact


class KvPool(NamedTuple):
    """Budget to blocks. Bytes a token and budgets per GPU; `max_seq_len` is the length after shrinking."""

    kv_budget_bytes: int
    estimate_bytes_per_token: int
    pool_bytes_per_token: int
    printed_bytes_per_token: Exact
    capped_budget_bytes: int
    max_tokens: int
    blocks: int
    pool_tokens: int
    printed_gib_2dp: str
    max_seq_len: int


def printed_gib(*, pool_tokens: int, printed_bytes_per_token: Exact) -> str:
    """The size in GiB that the engine prints: allocated bytes as a double over 2^30, two decimals."""
    allocated = pool_tokens * printed_bytes_per_token
    return f"{allocated.numerator // allocated.denominator / GIB:.2f}"


def fitting_tokens(*, max_tokens: int, fraction: float, free_now_bytes: int, pool_bytes_per_token: int) -> int:
    """Tokens of the final pool: at most what a second look at the free memory allows.

    It only binds when the estimate is too small, that is when tp exceeds the KV heads. Source rule:
    resource_manager.py, KVCacheManager.calculate_max_num_blocks.
    """
    return min(max_tokens, int(fraction * free_now_bytes / pool_bytes_per_token))


def kv_pool(
    specs: Sequence[LayerSpec],
    *,
    kv_format: KvFormat,
    tp: int,
    pp: int,
    attention_dp: bool,
    total_bytes: int,
    peak_bytes: int,
    tmp_kv_bytes: int,
    fraction: float,
    max_tokens: int | None,
    max_seq_len: int,
    free_now_bytes: int | None,
    tokens_per_block: int,
) -> KvPool:
    """The final pool from the profiled peak, in the engine's order of limits.

    `max_tokens` is the user's cap in tokens; `free_now_bytes` what is free when the final pool is built (None: that
    limit is left out). Source rule: _util.py configure_kv_cache_capacity, resource_manager.py calculate_max_num_blocks.
    """
    bits, scales = kv_format
    stored = pool_elements(specs, tp=tp, pp=pp, attention_dp=attention_dp)
    estimated = estimate_elements(specs, tp=tp, pp=pp, attention_dp=attention_dp)
    estimate = element_bytes(estimated, bits=bits, elements_a_scale=scales)
    per_token = element_bytes(stored, bits=bits, elements_a_scale=scales)
    printed = printed_bytes(stored, bits=bits, elements_a_scale=scales)
    budget = kv_budget_bytes(
        total_bytes=total_bytes, peak_bytes=peak_bytes, tmp_kv_bytes=tmp_kv_bytes, fraction=fraction
    )
    capped = budget if max_tokens is None else min(budget, max_tokens * estimate)
    tokens = granted = capped // estimate
    if free_now_bytes is not None:
        tokens = fitting_tokens(
            max_tokens=granted, fraction=fraction, free_now_bytes=free_now_bytes, pool_bytes_per_token=per_token
        )
    blocks = tokens // tokens_per_block
    pool_tokens = blocks * tokens_per_block
    return KvPool(
        budget,
        estimate,
        per_token,
        printed,
        capped,
        granted,
        blocks,
        pool_tokens,
        printed_gib(pool_tokens=pool_tokens, printed_bytes_per_token=printed),
        min(max_seq_len, pool_tokens),
    )


class PlannedPool(NamedTuple):
    """The pool of a plan: bytes a token as estimated, stored and printed; blocks, tokens and the served length."""

    estimate: int
    per_token: int
    printed: Exact
    blocks: int
    tokens: int
    max_seq_len: int


def planned_pool(
    specs: Sequence[LayerSpec], config: Configuration, kv_format: KvFormat, *, tp: int, free: int, granted: int
) -> PlannedPool:
    """The pool that `granted` of `free` bytes hold; the same rules as `kv_pool`, without options that a plan lacks."""
    bits, scales = kv_format
    stored = pool_elements(specs, tp=tp)
    estimate = element_bytes(estimate_elements(specs, tp=tp), bits=bits, elements_a_scale=scales)
    per_token = element_bytes(stored, bits=bits, elements_a_scale=scales)
    tokens = fitting_tokens(
        max_tokens=granted // estimate,
        fraction=config.fraction,
        free_now_bytes=free,
        pool_bytes_per_token=per_token,
    )
    blocks = tokens // config.tokens_per_block
    size = blocks * config.tokens_per_block
    printed = printed_bytes(stored, bits=bits, elements_a_scale=scales)
    return PlannedPool(estimate, per_token, printed, blocks, size, min(config.max_seq_len, size))


def record(
    specs: Sequence[LayerSpec],
    config: Configuration,
    kv_format: KvFormat,
    derivation: Derivation,
    *,
    tp: int,
    free: int,
    granted: int,
) -> PlannedPool:
    """The steps from granted bytes to blocks, tokens and the served length."""
    pool = planned_pool(specs, config, kv_format, tp=tp, free=free, granted=granted)
    bits: dict[str, tuple[int | None, str]] = {
        "bits": (kv_format.bits, "bits"),
        "elements_a_scale": (kv_format.elements_a_scale, "elements"),
    }
    note = None
    if kv_format.elements_a_scale is not None:
        note = "A later documentation combines NVFP4 KV with FP8 weights only; the arithmetic does not depend on it."
    for step, label, elements, value, source in (
        (
            "pool.estimate",
            "KV bytes per token, estimate",
            estimate_elements(specs, tp=tp),
            pool.estimate,
            "kv_estimate",
        ),
        ("pool.bytes_per_token", "KV bytes per token", pool_elements(specs, tp=tp), pool.per_token, "kv_bytes"),
    ):
        derivation.add(
            step,
            label,
            "element_bytes(elements, bits=bits, elements_a_scale=elements_a_scale)",
            value,
            "bytes",
            {"elements": (elements, "elements"), **bits},
            source,
            note=note,
        )
    per_block = config.tokens_per_block
    most = granted // pool.estimate
    derivation.add(
        "pool.max_tokens",
        "Tokens by the estimate",
        "granted // estimate",
        most,
        "tokens",
        {"granted": (granted, "bytes"), "estimate": (pool.estimate, "bytes")},
        "kv_budget",
    )
    tokens = fitting_tokens(
        max_tokens=most, fraction=config.fraction, free_now_bytes=free, pool_bytes_per_token=pool.per_token
    )
    derivation.add(
        "pool.fitting_tokens",
        "Tokens that the free memory holds",
        "min(max_tokens, int(fraction * free / bytes_per_token))",
        tokens,
        "tokens",
        {
            "max_tokens": (most, "tokens"),
            "fraction": (config.fraction, ""),
            "free": (free, "bytes"),
            "bytes_per_token": (pool.per_token, "bytes"),
        },
        "blocks",
        role="limit",
        note="Binds when tp exceeds the KV heads: the estimate is then too small." if tokens < most else None,
    )
    derivation.add(
        "pool.blocks",
        "KV blocks",
        "tokens // tokens_per_block",
        pool.blocks,
        "blocks",
        {"tokens": (tokens, "tokens"), "tokens_per_block": (per_block, "tokens")},
        "blocks",
        note="Rounded down; releases before 1.2 rounded up.",
    )
    derivation.add(
        "pool.tokens",
        "KV tokens per replica",
        "blocks * tokens_per_block",
        pool.tokens,
        "tokens",
        {"blocks": (pool.blocks, "blocks"), "tokens_per_block": (per_block, "tokens")},
        "allocated",
    )
    derivation.add(
        "pool.max_seq_len",
        "Longest sequence with this pool",
        "min(max_seq_len, tokens)",
        pool.max_seq_len,
        "tokens",
        {"max_seq_len": (config.max_seq_len, "tokens"), "tokens": (pool.tokens, "tokens")},
        "blocks",
        role="limit",
        note="The pool holds less than one full sequence." if pool.max_seq_len < config.max_seq_len else None,
    )
    return pool


def record_log(derivation: Derivation, pool: PlannedPool) -> None:
    """The step of the size that the engine prints."""
    allocated = pool.tokens * pool.printed
    derivation.add(
        "pool.printed_bytes",
        "Size that the log prints",
        "tokens * printed_bytes_per_token",
        allocated,
        "bytes",
        {"tokens": (pool.tokens, "tokens"), "printed_bytes_per_token": (pool.printed, "bytes")},
        "allocated",
        note="Printed over 2^30 as GiB with two decimals."
        + ("" if pool.printed == pool.per_token else " The scales of an NVFP4 cache are counted short."),
    )


def record_parameters(derivation: Derivation, pool: PlannedPool, *, state: int) -> int:
    """The steps of what each further token of a request takes, and of what it holds besides: `state` bytes in a slot of
    recurrent states, which lie beside the pool; returns the latter."""
    derivation.add(
        "layout.per_token",
        "Each further token of a long request",
        "bytes_per_token",
        pool.per_token,
        "bytes",
        {"bytes_per_token": (pool.per_token, "bytes")},
        "kv_bytes",
        note="Every attention layer keeps the whole context: no attention window is set by default.",
    )
    derivation.add(
        "layout.per_request",
        "A long request besides, whatever its length",
        "state",
        state,
        "bytes",
        {"state": (state, "bytes")},
        "mamba_cache" if state else "kv_bytes",
        note="Recurrent states, in one of max_batch_size slots that lie beside the pool." if state else None,
    )
    return state
