"""The pool of a scenario with its steps: tokens, blocks, the start-up check and the log line."""

from __future__ import annotations

from enginemem.engines.vllm.costs import Costs
from enginemem.engines.vllm.pool import KvShortage, log_line, shortage, sized
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run, does_not_fit, refused


def record_pool(run: Run, setup: Setup, costs: Costs, *, pool: int) -> None:
    """Record tokens, blocks and the start-up check of a pool of `pool` bytes, with the engine's log line; raises
    StopPlan with the engine's figures when one request of the maximum length does not fit."""
    steps, plan = run.steps, run.plan
    block, longest, length = costs.block_bytes, costs.longest_blocks, setup.max_model_len
    if costs.context_blocks is None and costs.token_bytes is not None:
        plan.kv_tokens = pool // costs.token_bytes
        steps.add(
            "pool.tokens",
            "KV tokens per replica",
            "pool // token_bytes",
            plan.kv_tokens,
            "tokens",
            {"pool": (pool, "bytes"), "token_bytes": (costs.token_bytes, "bytes")},
            "published",
            note="Not rounded to whole blocks.",
        )
    blocks = pool // block
    steps.add(
        "pool.blocks",
        "KV blocks",
        "pool // block_bytes",
        blocks,
        "blocks",
        {"pool": (pool, "bytes"), "block_bytes": (block, "bytes")},
        "blocks",
        note="One of them is the null block, which no request holds.",
    )
    usable = pool - block
    steps.add(
        "pool.usable",
        "Bytes beside the null block",
        "pool - block_bytes",
        usable,
        "bytes",
        {"pool": (pool, "bytes"), "block_bytes": (block, "bytes")},
        "fit",
        role="limit",
    )
    steps.add(
        "pool.longest_bytes",
        "Bytes of a request of the maximum length",
        "longest_blocks * block_bytes",
        longest * block,
        "bytes",
        {"longest_blocks": (longest, "blocks"), "block_bytes": (block, "bytes")},
        "fit",
        role="limit",
        note="Must fit beside the null block, or the engine does not start.",
    )
    short = shortage(
        costs.layout.groups, memory=usable, block_bytes=block, max_model_len=length, in_flight=costs.in_flight
    )
    if short is not None:
        raise does_not_fit(shortage_text(short, block_bytes=block))
    sizes = sized(
        costs.layout.groups, num_blocks=blocks, block_bytes=[block], max_model_len=length, in_flight=costs.in_flight
    )
    steps.add(
        "pool.concurrency",
        "Requests of the maximum length",
        "blocks / longest_blocks",
        sizes.max_concurrency,
        "requests",
        {"blocks": (blocks, "blocks"), "longest_blocks": (longest, "blocks")},
        "capacity",
    )
    steps.add(
        "pool.tokens_logged",
        "Tokens in the engine's log",
        "int(concurrency * max_model_len)",
        sizes.kv_tokens_logged,
        "tokens",
        {"concurrency": (sizes.max_concurrency, "requests"), "max_model_len": (length, "tokens")},
        "capacity",
    )
    plan.blocks = blocks
    plan.kv_tokens_logged = sizes.kv_tokens_logged
    plan.log_line = log_line(tokens=sizes.kv_tokens_logged, max_model_len=length, concurrency=sizes.max_concurrency)


def check_state_blocks(run: Run, setup: Setup, costs: Costs) -> None:
    """Raise StopPlan when recurrent layers have fewer blocks than the request cap: with full decode graphs the engine
    refuses to start, because every decoding request needs a state block (`config/compilation.py`)."""
    blocks = run.plan.blocks or 0
    if costs.state_bytes and setup.request_cap > blocks:
        raise refused(
            f"the max_num_seqs of {setup.request_cap:,} is above the {blocks:,} Mamba cache blocks: each decoding request "
            f"needs one, so give a max_num_seqs of at most {blocks:,}"
        )


def shortage_text(short: KvShortage, *, block_bytes: int) -> str:
    """The engine's start-up error in short, with its figures."""
    if short.max_model_len is None:
        return f"the KV pool holds no block of {block_bytes:,} bytes beside the null block"
    longest = short.estimated_max_model_len
    return (
        f"one request of max_model_len {short.max_model_len:,} needs {short.needed_GiB_printed} GiB of KV cache, and "
        f"{short.available_GiB_printed} GiB are available; "
        + ("no length fits" if longest is None else f"the longest length that fits is {longest:,}")
    )
