"""The requests that run: the published closed form, and the steady state of the engine's scheduler.

Source rules: `Scheduler.schedule` and `KVCacheManager.allocate_slots` at 0.32.0. Admission never consults max_tokens:
the head of the queue enters when the blocks of its tokens are free beside the watermark; when blocks run out the newest
request is preempted and recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from enginemem.engines.plan import Binds, SteadyState
from enginemem.engines.vllm.costs import Costs
from enginemem.engines.vllm.held import Held, OutputLength, held_thrice, next_request_blocks
from enginemem.engines.vllm.layout import KvRow, counted
from enginemem.engines.vllm.request import Traffic
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run
from enginemem.release import EngineRelease
from enginemem.units import Exact

LAW = "blocks beside the free space, over the blocks that a request holds at its mean progress"


class Limits(NamedTuple):
    """What bounds the running requests in the steady state: blocks, tokens of a step, the request cap."""

    memory: float
    budget: float
    cap: int


def published_running(*, tokens: int, context: Exact, request_cap: int) -> int:
    """The published closed form: requests at their mean `context` (prompt + mean output / 2), under the cap."""
    return min(request_cap, int(tokens // context))


def published_running_by_blocks(*, pool: int, block_bytes: int, context_blocks: Fraction, request_cap: int) -> int:
    """The closed form where a request's blocks do not follow its tokens alone: `context_blocks` at the mean context."""
    return min(request_cap, int(pool // (block_bytes * context_blocks)))


def free_blocks(*, next_blocks: int, held: float, watermark_blocks: int) -> float:
    """Blocks that stay free on average beside the watermark while the head of the queue waits: half of what it needs;
    more when it needs more to enter than it holds afterwards."""
    return max(next_blocks / 2, next_blocks - held / 2) + watermark_blocks


def requests_by_blocks(held: Held, *, num_blocks: int, next_blocks: int, watermark: float) -> float:
    """Mean running requests that `num_blocks` blocks hold, at least 1.

    The next request waits until its whole prefill finds room. Where prefills follow each other with pauses, it finds
    only decoding requests; where they overlap, the blocks that one gives back go to the next.
    """
    kept = int(watermark * num_blocks)
    apart = free_blocks(next_blocks=next_blocks, held=held.decoding, watermark_blocks=kept)
    close = free_blocks(next_blocks=next_blocks, held=held.whole, watermark_blocks=kept)
    return max(1.0, min((num_blocks - 1 - apart) / held.decoding, (num_blocks - 1 - close) / held.mean))


def step_room(rows: Sequence[KvRow], *, prompt: int, max_num_batched_tokens: int) -> float:
    """Tokens of a step that requests use once it is full, on average.

    Beside recurrent states a prefill may only stop at the end of a block (`_mamba_block_aligned_split`), so a rest that
    is shorter stays empty: half a block, or half the prompt. Blocks wider than a step are not waited for.
    """
    widest = max([row.block_size for row in rows if row.kind == "mamba"], default=0)
    if widest > max_num_batched_tokens:
        return float(max_num_batched_tokens)
    return max_num_batched_tokens - min(widest, prompt) / 2


def steady_limits(
    rows: Sequence[KvRow],
    *,
    prompt: int,
    mean_output: float,
    progress: float,
    num_blocks: int,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    watermark: float,
    in_flight: int,
    prefill_steps: int,
    length: OutputLength | None = None,
) -> Limits:
    """The three limits for KV groups `rows`, one row a group.

    `mean_output` and `progress` are moments of the output length after the cut, tokens (`OutputMoments`); `length` is
    the length itself, which chunked and recurrent groups need (ValueError without it).
    The budget limit: every step has room for its tokens only, so requests enter at the rate at which their prompts and
    outputs fill it, and one request at a time is cut by the step's end.
    """
    next_blocks = sum([next_request_blocks(row, prompt=prompt, in_flight=in_flight) for row in rows])
    held = held_thrice(
        counted(rows),
        prompt=prompt,
        mean_output=mean_output,
        progress=progress,
        prefill_steps=prefill_steps,
        length=length,
    )
    memory = requests_by_blocks(held, num_blocks=num_blocks, next_blocks=next_blocks, watermark=watermark)
    room = step_room(rows, prompt=prompt, max_num_batched_tokens=max_num_batched_tokens)
    budget = room * mean_output / (prompt + mean_output - 1) + 1
    return Limits(memory, budget, max_num_seqs)


def steady_state(
    limits: Limits, release: EngineRelease, *, prompt: int, mean_output: int, aligned: bool = False, late: bool = False
) -> SteadyState:
    """The smallest limit as the mean running count, with the interval that covers measurements.

    `mean_output` is the mean before the cut. The accuracy comes from runs of the engine's own scheduler and some
    hundred runs of a re-implementation that reproduces them: 2 % and one request; 10 % and one request where outputs
    are longer than a third of the prompt (recomputed ones return in waves) or two limits lie within a quarter of each
    other; 12 % for mean outputs of 1,000 tokens and more, where even a mean over 10,000 steps has not settled. `aligned` is
    prefill in whole blocks, beside recurrent states: 15 % and one request where the step budget is near. `late` are blocks
    that come back late behind windows: 4 % and one request where prefills begin to overlap.
    """
    mean = min(limits)
    second = sorted(limits)[1]
    cap = float(limits.cap)
    grain = float(release.integer("steady_granularity"))
    if mean_output >= release.integer("long_output"):
        accuracy, grain = release.number("steady_accuracy_long"), 0.0
    elif aligned and limits.budget < mean * release.number("steady_close"):
        accuracy = release.number("steady_accuracy_aligned")
    elif mean_output * release.integer("steady_output_share") > prompt or second < mean * release.number(
        "steady_close"
    ):
        accuracy = release.number("steady_accuracy_waves")
    else:
        accuracy = release.number("steady_accuracy_late" if late else "steady_accuracy")
    regime = "memory" if mean == limits.memory else "token_budget" if mean == limits.budget else "request_cap"
    low = max(0.0, mean * (1 - accuracy) - grain)
    return SteadyState(float(mean), low, min(cap, mean * (1 + accuracy) + grain), LAW, regime)


def record_running(run: Run, setup: Setup, costs: Costs, traffic: Traffic, *, pool: int) -> int:
    """Record the published closed form and what binds; returns the running requests."""
    steps, plan = run.steps, run.plan
    cap, context = setup.request_cap, traffic.context
    if costs.context_blocks is None:
        tokens = plan.kv_tokens or 0
        fits = int(tokens // context)
        steps.add(
            "admission.memory",
            "Requests that the KV tokens hold",
            "floor(tokens / context)",
            fits,
            "requests",
            {"tokens": (tokens, "tokens"), "context": (context, "tokens")},
            "published",
            role="limit",
        )
        running = published_running(tokens=tokens, context=context, request_cap=cap)
    else:
        block, blocks = costs.block_bytes, costs.context_blocks
        fits = int(pool // (block * blocks))
        steps.add(
            "admission.memory",
            "Requests that the KV blocks hold",
            "floor(pool / (block_bytes * blocks))",
            fits,
            "requests",
            {"pool": (pool, "bytes"), "block_bytes": (block, "bytes"), "blocks": (blocks, "blocks")},
            "published",
            role="limit",
        )
        running = published_running_by_blocks(pool=pool, block_bytes=block, context_blocks=blocks, request_cap=cap)
    steps.add(
        "admission.running",
        "Requests running",
        "min(request_cap, memory)",
        running,
        "requests",
        {"request_cap": (cap, "requests"), "memory": (fits, "requests")},
        "published",
        "scheduler",
    )
    plan.running = running
    plan.binds = binding(running_by_memory=fits, setup=setup)
    return running


def binding(*, running_by_memory: int, setup: Setup) -> Binds:
    """What limits the published count; a cap that the step budget clipped is the budget's."""
    if running_by_memory < setup.request_cap:
        return "kv_memory"
    return "token_budget" if setup.cap_from_budget else "request_cap"
