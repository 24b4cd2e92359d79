"""The requests that run: the published closed form, and the steady state of the engine's scheduler.

Source rules: `Scheduler.schedule` and `KVCacheManager.allocate_slots` at 0.32.0. Admission never consults max_tokens:
the head of the queue enters when the blocks of its tokens are free beside the watermark; when blocks run out the newest
request is preempted and recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from enginemem.engines.plan import Binds, SteadyState
from enginemem.engines.vllm.costs import Costs
from enginemem.engines.vllm.layout import KvRow, blocks_per_request, counted
from enginemem.engines.vllm.request import Traffic
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run
from enginemem.release import EngineRelease
from enginemem.traffic import Shape, marks_reached
from enginemem.units import Exact, ceil_div

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


class OutputLength(NamedTuple):
    """The output length of requests, tokens: `mean` before the cut at `limit`."""

    shape: Shape
    mean: int
    limit: int

    def marks(self, *, first: int, step: int) -> float:
        """Mean number of the output tokens `first`, `first` + `step`, ... that a running request has reached."""
        return marks_reached(self.shape, self.mean, self.limit, first, step)


def next_request_blocks(row: KvRow, *, prompt: int, in_flight: int) -> int:
    """Blocks of one group that a request of `prompt` tokens must find free to be admitted.

    A recurrent state takes one, and another for the checkpoint at the prompt's last whole block.
    """
    whole = ceil_div(prompt, row.block_size)
    if row.kind == "mamba":
        return min(whole, 1 + row.prefill_checkpoint_blocks)
    if row.kind in ("sliding", "chunked"):
        return min(whole, blocks_per_request(row, tokens=prompt, in_flight=in_flight))
    return whole


def held_blocks(row: KvRow, *, prompt: int, mean_output: float, progress: float, prefill_steps: int) -> float:
    """Blocks of one group of full or sliding layers that a running request holds on average.

    Half a block is open, and every token of output adds at most a block to the prompt's. A window of w tokens covers
    w / block + 1 blocks, wherever it begins; for `prefill_steps` of a request's steps, one a token, the group still
    holds the whole prompt.
    """
    block = row.block_size
    whole = min((prompt + progress + block / 2) / block, ceil_div(prompt, block) + progress - 1)
    if row.kind != "sliding" or row.window is None:
        return whole
    share = min(1.0, prefill_steps / mean_output)
    return min(row.window / block + 1 + share * max(0, prompt - row.window) / block, whole)


def held_in_chunks(
    row: KvRow, *, prompt: int, mean_output: float, progress: float, prefill_steps: int, length: OutputLength
) -> float:
    """The same for chunked layers: the blocks of the tokens, less those of the chunks that lie behind.

    A chunk is freed one processed step after its last token; a prefill holds its chunks for `prefill_steps` steps.
    """
    chunk, block = row.chunk or 1, row.block_size
    whole = held_blocks(row, prompt=prompt, mean_output=mean_output, progress=progress, prefill_steps=prefill_steps)
    behind = prompt // chunk
    marks = length.marks(first=chunk - prompt % chunk + 1, step=chunk)
    share = min(1.0, prefill_steps / mean_output)
    return whole - chunk / block * (behind + marks) + share * chunk / block * behind


def held_beside_states(row: KvRow, *, prompt: int, length: OutputLength) -> float:
    """The same for the groups of a hybrid with recurrent layers, whose blocks are hundreds of tokens wide: the state
    takes one block, attention whole blocks up to the token in progress, counted exactly."""
    if row.kind == "mamba":
        return 1.0
    whole = ceil_div(prompt + 1, row.block_size)
    return whole + length.marks(first=whole * row.block_size - prompt + 1, step=row.block_size)


def held_by_groups(
    counts: Mapping[KvRow, int],
    *,
    prompt: int,
    mean_output: float,
    progress: float,
    prefill_steps: int,
    length: OutputLength | None,
) -> float:
    """Blocks that a running request holds on average over all groups: each spec with the number of its groups."""
    states, total = any(row.kind == "mamba" for row in counts), 0.0
    for row, count in counts.items():
        if length is None and (states or row.kind == "chunked"):
            raise ValueError("chunked and recurrent groups need the output length")
        if states and length is not None:
            held = held_beside_states(row, prompt=prompt, length=length)
        elif row.kind == "chunked" and length is not None:
            held = held_in_chunks(
                row,
                prompt=prompt,
                mean_output=mean_output,
                progress=progress,
                prefill_steps=prefill_steps,
                length=length,
            )
        else:
            held = held_blocks(
                row, prompt=prompt, mean_output=mean_output, progress=progress, prefill_steps=prefill_steps
            )
        total += count * held
    return total


def free_blocks(*, next_blocks: int, held: float, watermark_blocks: int) -> float:
    """Blocks that stay free on average beside the watermark while the head of the queue waits: half of what it needs;
    more when it needs more to enter than it holds afterwards."""
    return max(next_blocks / 2, next_blocks - held / 2) + watermark_blocks


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
    held = held_by_groups(
        counted(rows),
        prompt=prompt,
        mean_output=mean_output,
        progress=progress,
        prefill_steps=prefill_steps,
        length=length,
    )
    free = free_blocks(next_blocks=next_blocks, held=held, watermark_blocks=int(watermark * num_blocks))
    room = step_room(rows, prompt=prompt, max_num_batched_tokens=max_num_batched_tokens)
    budget = room * mean_output / (prompt + mean_output - 1) + 1
    return Limits(max(1.0, (num_blocks - 1 - free) / held), budget, max_num_seqs)


def steady_state(
    limits: Limits, release: EngineRelease, *, prompt: int, mean_output: int, aligned: bool = False
) -> SteadyState:
    """The smallest limit as the mean running count, with the interval that covers measurements.

    `mean_output` is the mean before the cut. The accuracy comes from runs of the engine's own scheduler and some
    hundred runs of a re-implementation that reproduces them: 2 % and one request; 10 % and one request where outputs
    are longer than a third of the prompt (recomputed ones return in waves) or two limits lie within a quarter of each
    other; 12 % for mean outputs of 1,000 tokens and more, where even a mean over 10,000 steps has not settled. `aligned` is
    prefill in whole blocks, beside recurrent states: 15 % and one request where the step budget is near.
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
        accuracy = release.number("steady_accuracy")
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
