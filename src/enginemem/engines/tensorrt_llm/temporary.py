"""The temporary KV pool that exists while the engine measures its peak."""

from __future__ import annotations

from enginemem.derivation import Derivation
from enginemem.engines.tensorrt_llm.resolve import Configuration
from enginemem.release import EngineRelease
from enginemem.units import ceil_div


def temporary_pool_blocks(
    *,
    max_seq_len_kv: int,
    free_bytes: int,
    estimate_bytes_per_token: int,
    max_num_tokens: int,
    max_batch_size: int,
    graph_max_bs: int,
    extra_tokens: int,
    fraction: float,
    tokens_per_block: int,
) -> int:
    """Blocks of the pool that exists while the engine measures its peak.

    `max_seq_len_kv` is max_seq_len plus `extra_tokens` (1 with the overlap scheduler); `graph_max_bs` is 0 when graphs
    are off. The dummy prompts fill max_num_tokens. Source rule: _util.py, _get_token_num_for_estimation.
    """
    longest = min(max_num_tokens, max(1, max_seq_len_kv - extra_tokens - 1))
    prompts, rest = divmod(max_num_tokens, longest)
    dummy = prompts * ceil_div(longest + 1 + extra_tokens, tokens_per_block)
    if rest:
        dummy += ceil_div(rest + 1 + extra_tokens, tokens_per_block)
    graph = max_seq_len_kv // tokens_per_block + graph_max_bs - 1
    cap = int(fraction * free_bytes / estimate_bytes_per_token) // tokens_per_block
    return min(max(dummy, graph, max_batch_size), cap)


def record(
    config: Configuration, release: EngineRelease, derivation: Derivation, *, free: int, estimate: int, largest: int
) -> None:
    """The step of the temporary pool: for information, it is torn down before the final pool."""
    extra = release.integer("overlap_extra_tokens")
    length = config.max_seq_len + extra
    blocks = temporary_pool_blocks(
        max_seq_len_kv=length,
        free_bytes=free,
        estimate_bytes_per_token=estimate,
        max_num_tokens=config.max_num_tokens,
        max_batch_size=config.max_batch_size,
        graph_max_bs=largest,
        extra_tokens=extra,
        fraction=config.fraction,
        tokens_per_block=config.tokens_per_block,
    )
    derivation.add(
        "pool.temporary_blocks",
        "Blocks while the peak is measured",
        "temporary_pool_blocks(max_seq_len_kv=max_seq_len + extra, free_bytes=free, estimate_bytes_per_token=estimate, "
        "max_num_tokens=max_num_tokens, max_batch_size=max_batch_size, graph_max_bs=largest_graph, extra_tokens=extra, "
        "fraction=fraction, tokens_per_block=tokens_per_block)",
        blocks,
        "blocks",
        {
            "max_seq_len": (config.max_seq_len, "tokens"),
            "extra": (extra, "tokens"),
            "free": (free, "bytes"),
            "estimate": (estimate, "bytes"),
            "max_num_tokens": (config.max_num_tokens, "tokens"),
            "max_batch_size": (config.max_batch_size, "requests"),
            "largest_graph": (largest, "requests"),
            "fraction": (config.fraction, ""),
            "tokens_per_block": (config.tokens_per_block, "tokens"),
        },
        "estimation",
        role="limit",
        note="For information: added back before the budget is taken. The engine reads the free memory right after "
        "loading, here what is free in the end; with little memory it can run out here first, and a lower "
        "max_batch_size helps.",
    )
