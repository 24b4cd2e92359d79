"""The steady state of a scenario, with its steps."""

from __future__ import annotations

from collections.abc import Mapping

from enginemem.derivation import Operand
from enginemem.engines.vllm.admission import Limits, steady_limits, steady_state
from enginemem.engines.vllm.costs import Costs
from enginemem.engines.vllm.held import Held, OutputLength, held_by_groups, next_request_blocks
from enginemem.engines.vllm.layout import KvRow
from enginemem.engines.vllm.request import Traffic
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run
from enginemem.traffic import OutputMoments, Shape, output_moments


def output_progress(shape: Shape, mean: int, limit: int) -> float:
    """Mean progress of a running request, tokens: longer requests are seen more often."""
    return output_moments(shape=shape, mean=mean, limit=limit).progress


def record_steady(run: Run, setup: Setup, costs: Costs, traffic: Traffic) -> None:
    """Record the law's parts and the steady state."""
    release, plan = run.release, run.plan
    rows = [group.rows[0] for group in costs.layout.groups]
    if plan.blocks is None:
        return
    length = OutputLength(run.scenario.shape, run.scenario.mean_output, traffic.limit)
    moments = _record_output(run, traffic)
    late = release.integer("steady_prefill_steps")
    limits = steady_limits(
        rows,
        prompt=traffic.prompt,
        mean_output=moments.mean,
        progress=moments.progress,
        num_blocks=plan.blocks,
        max_num_seqs=setup.request_cap,
        max_num_batched_tokens=setup.step_tokens,
        watermark=setup.watermark,
        in_flight=costs.in_flight,
        prefill_steps=late,
        length=length,
    )
    counts = costs.layout.counts
    next_total = _record_next(run, counts, costs, traffic)
    held = _record_held(run, counts, traffic, moments=moments, late=late, length=length)
    _record_limits(run, setup, costs, traffic, limits, moments=moments, next_total=next_total, held=held)
    plan.running_steady = steady_state(
        limits,
        release,
        prompt=traffic.prompt,
        mean_output=run.scenario.mean_output,
        aligned=any(row.kind == "mamba" for row in counts),
        late=held.decoding != held.mean,
    )


def _record_output(run: Run, traffic: Traffic) -> OutputMoments:
    shape, mean, limit = run.scenario.shape, run.scenario.mean_output, traffic.limit
    moments = output_moments(shape=shape, mean=mean, limit=limit)
    operands: dict[str, Operand] = {"shape": (shape, ""), "mean": (mean, "tokens"), "limit": (limit, "tokens")}
    run.steps.add(
        "admission.output",
        "Mean output after the cut",
        "output_mean(shape, mean, limit)",
        moments.mean,
        "tokens",
        operands,
        "steady_law",
    )
    run.steps.add(
        "admission.progress",
        "Mean progress of a running request",
        "output_progress(shape, mean, limit)",
        moments.progress,
        "tokens",
        operands,
        "steady_law",
        note="Longer outputs are in flight for longer.",
    )
    return moments


def _record_next(run: Run, counts: Mapping[KvRow, int], costs: Costs, traffic: Traffic) -> int:
    """Record the blocks that the next request must find free, over all groups."""
    terms, total = [], 0
    operands: dict[str, Operand] = {"prompt": (traffic.prompt, "tokens")}
    for index, (row, count) in enumerate(counts.items()):
        operands[f"groups_{index}"] = (count, "groups")
        operands[f"block_{index}"] = (row.block_size, "tokens")
        term = f"ceil_div(prompt, block_{index})"
        if row.kind == "mamba":
            operands[f"states_{index}"] = (1 + row.prefill_checkpoint_blocks, "blocks")
            term = f"min({term}, states_{index})"
        elif row.kind == "sliding" and row.window is not None:
            operands[f"window_{index}"] = (row.window, "tokens")
            operands["in_flight"] = (costs.in_flight, "tokens")
            reach = f"ceil_div(min(window_{index} - 1 + in_flight, prompt), block_{index}) + 1"
            term = f"min({term}, {reach})"
        elif row.kind == "chunked" and row.chunk is not None:
            operands[f"chunk_{index}"] = (row.chunk, "tokens")
            operands["in_flight"] = (costs.in_flight, "tokens")
            term = f"min({term}, ceil_div(min(chunk_{index} + in_flight, prompt), block_{index}))"
        terms.append(f"groups_{index} * {term}")
        total += count * next_request_blocks(row, prompt=traffic.prompt, in_flight=costs.in_flight)
    run.steps.add(
        "admission.next_blocks",
        "Blocks that the next request must find free",
        " + ".join(terms),
        total,
        "blocks",
        operands,
        "admission",
    )
    return total


def _record_held(
    run: Run,
    counts: Mapping[KvRow, int],
    traffic: Traffic,
    *,
    moments: OutputMoments,
    late: int,
    length: OutputLength,
) -> Held:
    """Record the blocks that a running request holds over all groups: on average and, where blocks behind a window are
    freed late, also while it only decodes and while its prefill is held whole."""
    names = ("admission.held_blocks", "Blocks that a running request holds")
    mean = _record_one(run, counts, traffic, names, moments=moments, late=late, length=length)
    if not any(row.kind in ("sliding", "chunked") for row in counts):
        return Held(mean, mean, mean)
    names = ("admission.decoding_blocks", "The same while it only decodes")
    decoding = _record_one(run, counts, traffic, names, moments=moments, late=0, length=length)
    names = ("admission.whole_blocks", "The same while its prefill is held whole")
    whole = _record_one(run, counts, traffic, names, moments=moments, late=moments.mean, length=length)
    return Held(mean, decoding, whole)


def _record_one(
    run: Run,
    counts: Mapping[KvRow, int],
    traffic: Traffic,
    names: tuple[str, str],
    *,
    moments: OutputMoments,
    late: float,
    length: OutputLength,
) -> float:
    states = any(row.kind == "mamba" for row in counts)
    operands: dict[str, Operand] = {"prompt": (traffic.prompt, "tokens")}
    if not states:
        operands["progress"] = (moments.progress, "tokens")
    if states or any(row.kind == "chunked" for row in counts):
        operands["shape"] = (length.shape, "")
        operands["mean"], operands["limit"] = (length.mean, "tokens"), (length.limit, "tokens")
    terms = []
    for index, (row, count) in enumerate(counts.items()):
        operands[f"groups_{index}"] = (count, "groups")
        if row.kind != "mamba":
            operands[f"block_{index}"] = (row.block_size, "tokens")
        reach = f"window_{index}" if row.kind == "sliding" else f"chunk_{index}"
        if row.kind in ("sliding", "chunked"):
            operands[reach] = (row.window or row.chunk, "tokens")
            operands["output"], operands["late"] = (moments.mean, "tokens"), (late, "steps")
        terms.append(f"groups_{index} * {_held_term(row, f'block_{index}', reach, states=states)}")
    total = held_by_groups(
        counts,
        prompt=traffic.prompt,
        mean_output=moments.mean,
        progress=moments.progress,
        prefill_steps=late,
        length=length,
    )
    run.steps.add(
        *names,
        " + ".join(terms),
        total,
        "blocks",
        operands,
        "steady_law",
        note="A state takes one block; attention blocks are counted whole, up to the token in progress."
        if states
        else None,
    )
    return total


def _held_term(row: KvRow, block: str, reach: str, *, states: bool) -> str:
    """The expression of the blocks that one group holds, over operands named `block` and `reach`."""
    if row.kind == "mamba":
        return "1.0"
    if states:
        whole = f"ceil_div(prompt + 1, {block})"
        return f"({whole} + marks_reached(shape, mean, limit, {whole} * {block} - prompt + 1, {block}))"
    whole = f"min((prompt + progress + {block} / 2) / {block}, ceil_div(prompt, {block}) + progress - 1)"
    if row.kind == "sliding":
        covers = f"{reach} / {block} + 1 + min(1.0, late / output) * max(0, prompt - {reach}) / {block}"
        return f"min({covers}, {whole})"
    if row.kind == "chunked":
        marks = f"marks_reached(shape, mean, limit, {reach} - prompt % {reach} + 1, {reach})"
        kept = f"min(1.0, late / output) * {reach} / {block} * (prompt // {reach})"
        return f"({whole} - {reach} / {block} * (prompt // {reach} + {marks}) + {kept})"
    return whole


def _record_limits(
    run: Run,
    setup: Setup,
    costs: Costs,
    traffic: Traffic,
    limits: Limits,
    *,
    moments: OutputMoments,
    next_total: int,
    held: Held,
) -> None:
    steps, blocks = run.steps, [row.block_size for row in costs.layout.counts if row.kind == "mamba"]
    room = "step_tokens"
    budget: dict[str, Operand] = {
        "step_tokens": (setup.step_tokens, "tokens"),
        "output": (moments.mean, "tokens"),
        "prompt": (traffic.prompt, "tokens"),
    }
    if blocks and blocks[0] <= setup.step_tokens:
        room, budget["block"] = "(step_tokens - min(block, prompt) / 2)", (blocks[0], "tokens")
    _record_memory(run, setup, limits, next_total=next_total, held=held)
    steps.add(
        "admission.steady_budget",
        "Requests that the step budget feeds",
        f"{room} * output / (prompt + output - 1) + 1",
        limits.budget,
        "requests",
        budget,
        "steady_law",
        role="limit",
        note="Prefills end at block boundaries: half a block of a full step stays empty." if len(budget) > 3 else None,
    )
    steps.add(
        "admission.steady",
        "Requests running in the steady state",
        "float(min(memory, budget, request_cap))",
        float(min(limits)),
        "requests",
        {
            "memory": (limits.memory, "requests"),
            "budget": (limits.budget, "requests"),
            "request_cap": (limits.cap, "requests"),
        },
        "steady_law",
        note="Under an endless backlog; preemption is part of it.",
    )


def _record_memory(run: Run, setup: Setup, limits: Limits, *, next_total: int, held: Held) -> None:
    operands: dict[str, Operand] = {
        "blocks": (run.plan.blocks, "blocks"),
        "next": (next_total, "blocks"),
        "held": (held.mean, "blocks"),
        "watermark": (setup.watermark, ""),
    }
    expression = "max(1.0, (blocks - 1 - (max(next / 2, next - held / 2) + int(watermark * blocks))) / held)"
    note = "Free on average, beside the watermark: half of what the next request needs, more if it then holds less."
    if held.decoding != held.mean:
        operands |= {"decoding": (held.decoding, "blocks"), "whole": (held.whole, "blocks")}
        kept = "int(watermark * blocks)"
        expression = (
            f"max(1.0, min((blocks - 1 - (max(next / 2, next - decoding / 2) + {kept})) / decoding, "
            f"(blocks - 1 - (max(next / 2, next - whole / 2) + {kept})) / held))"
        )
        note = (
            "The next request waits for room for its whole prefill: beside decoding requests, or as another gives back."
        )
    run.steps.add(
        "admission.steady_memory",
        "Requests that the blocks hold",
        expression,
        limits.memory,
        "requests",
        operands,
        "steady_law",
        "admission",
        role="limit",
        note=note,
    )
