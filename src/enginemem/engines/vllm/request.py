"""What one token and one request cost in a scenario: the layout's figures with their steps, and the request's limits.

Source rules: `vllm/v1/kv_cache_interface.py`, and for the limits of a request `get_max_tokens`,
`TokenizeParams.__post_init__` and `InputProcessor._validate_prompt_len` at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from enginemem.derivation import Derivation, NotModeled, Operand
from enginemem.engines.vllm.layout import (
    KvGroup,
    KvRow,
    blocks_per_request,
    counted,
    kv_groups,
    max_in_flight_tokens,
    model_rows,
    page_bytes,
    token_bytes,
)
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run, StopPlan, not_modeled, refused
from enginemem.scenario import Scenario
from enginemem.units import Exact


class Traffic(NamedTuple):
    """One request, tokens: prompt, output limit after the server's clip, and the mean context of a running request
    (prompt + half the mean output, which is at most the limit)."""

    prompt: int
    limit: int
    context: Exact


class Costs(NamedTuple):
    """Per GPU: the KV groups, bytes of one block over all layers, bytes of one token, blocks that a request of the
    maximum length takes, tokens scheduled and not settled; `context_blocks` are the blocks of a request at its mean
    context, None where they follow its tokens alone, so that the pool can be told in tokens."""

    groups: Sequence[KvGroup]
    block_bytes: int
    token_bytes: int
    longest_blocks: int
    in_flight: int
    context_blocks: Fraction | None


def request_problem(*, prompt: int, max_tokens: int, max_model_len: int) -> StopPlan | None:
    """Why the server refuses a request, or None: the output limit alone above the maximum length, or a prompt that
    leaves no room for a token of output."""
    if prompt >= max_model_len:
        return refused(
            f"the server refuses a prompt of {prompt:,} tokens: "
            f"max_model_len {max_model_len:,} leaves no room for output",
            binds="prompt_limit",
        )
    if max_tokens > max_model_len:
        return refused(
            f"the server refuses max_tokens {max_tokens:,} above max_model_len {max_model_len:,}", binds="prompt_limit"
        )
    return None


def output_limit(*, prompt: int, max_tokens: int, max_model_len: int) -> int:
    """The output limit of a request, tokens: clipped to what the prompt leaves of the maximum length."""
    return min(max_tokens, max_model_len - prompt)


def record_traffic(run: Run, setup: Setup) -> Traffic | None:
    """Record the request's output limit; None when the server refuses the request."""
    scenario, steps = run.scenario, run.steps
    prompt, asked, length = scenario.prompt, scenario.max_tokens, setup.max_model_len
    if request_problem(prompt=prompt, max_tokens=asked, max_model_len=length) is not None:
        return None
    limit = output_limit(prompt=prompt, max_tokens=asked, max_model_len=length)
    steps.add(
        "resolve.output_limit",
        "Output limit of a request",
        "min(max_tokens, max_model_len - prompt)",
        limit,
        "tokens",
        {
            "max_tokens": (asked, "tokens"),
            "max_model_len": (length, "tokens"),
            "prompt": (prompt, "tokens"),
        },
        "output_limit",
        role="limit",
        note="clipped by the server" if limit < asked else "never consulted at admission",
    )
    mean = min(scenario.mean_output, limit)
    context = Fraction(2 * prompt + mean, 2)
    shown: Exact = context.numerator if context.denominator == 1 else context
    steps.add(
        "layout.mean_context",
        "Mean context of a running request",
        "prompt + Fraction(min(mean_output, limit), 2)",
        shown,
        "tokens",
        {
            "prompt": (prompt, "tokens"),
            "mean_output": (scenario.mean_output, "tokens"),
            "limit": (limit, "tokens"),
        },
        "published",
        note="the mean output is the mean before the max_tokens cut",
    )
    return Traffic(prompt, limit, shown)


def record_costs(run: Run, setup: Setup, traffic: Traffic | None) -> Costs:
    """Record token and block bytes, the blocks of the longest request and of one at its mean context; raises StopPlan
    for layers that are not modeled."""
    scenario, steps = run.scenario, run.steps
    rows = model_rows(scenario.model, tp=scenario.tp, dtype=setup.kv_format, block_size=setup.block_size)
    if isinstance(rows, NotModeled):
        raise not_modeled(rows.reason)
    groups = kv_groups([rows])
    block = max([group.layer_bytes[0] for group in groups])
    each = sum([row.n * token_bytes(row) for row in rows])
    in_flight = max_in_flight_tokens(
        pipeline_parallel=1,
        max_num_batched_tokens=setup.step_tokens,
        extra_batches=run.release.integer("in_flight_extra_batches"),
    )
    _record_bytes(steps, rows, groups, block=block, each=each, scenario=scenario)
    longest = _record_longest(steps, groups, setup, in_flight)
    tokens_alone = len(groups) == 1 and groups[0].kind in ("full_attention", "mla_attention")
    context = None if tokens_alone or traffic is None else _record_context(steps, groups, traffic)
    return Costs(groups, block, each, longest, in_flight, context)


def _record_bytes(
    steps: Derivation, rows: Sequence[KvRow], groups: Sequence[KvGroup], *, block: int, each: int, scenario: Scenario
) -> None:
    row, spec = rows[0], scenario.model.layers[0]
    packed = row.dtype == "nvfp4"
    terms = " + ".join([f"layers_{index} * bytes_{index}" for index in range(len(rows))])
    operands: dict[str, Operand] = {}
    for index, other in enumerate(rows):
        operands[f"layers_{index}"] = (other.n, "layers")
        operands[f"bytes_{index}"] = (token_bytes(other), "bytes")
    steps.add(
        "layout.kv_heads",
        "KV heads on one GPU",
        "max(1, kv_heads // tp)",
        row.kv_heads,
        "heads",
        {"kv_heads": (spec.kv_heads, "heads"), "tp": (scenario.tp, "GPUs")},
        "kv_heads",
        note="replicated beyond the model's KV heads" if scenario.tp > spec.kv_heads else None,
    )
    steps.add(
        "layout.layer_token",
        "One token in one layer",
        "2 * kv_heads * (head_size // 2 + head_size // 16)" if packed else "2 * kv_heads * head_size * element",
        token_bytes(row),
        "bytes",
        {"kv_heads": (row.kv_heads, "heads"), "head_size": (row.head_size, "elements")}
        | ({} if packed else {"element": (token_bytes(row) // (2 * row.kv_heads * row.head_size), "bytes")}),
        "page",
        note="4-bit values and an fp8 scale for every 16 of them" if packed else None,
    )
    steps.add("layout.token_bytes", "KV bytes per token", terms, each, "bytes", operands, "page")
    # After page unification every layer of every group has the same page.
    largest = max(groups, key=lambda group: group.layer_bytes[0])
    steps.add(
        "layout.block_bytes",
        "Bytes of one block",
        "layers * page",
        block,
        "bytes",
        {"layers": (largest.layers[0], "layers"), "page": (page_bytes(largest.rows[0]), "bytes")},
        "groups",
        note=None if len(groups) == 1 else f"{len(groups)} KV groups share the pool's blocks",
    )


def _record_longest(steps: Derivation, groups: Sequence[KvGroup], setup: Setup, in_flight: int) -> int:
    """Record the blocks that a request of the maximum length takes, group by group of the same spec."""
    length, terms, total = setup.max_model_len, [], 0
    operands: dict[str, Operand] = {"max_model_len": (length, "tokens")}
    for index, (row, count) in enumerate(counted([group.rows[0] for group in groups]).items()):
        tag = f"_{index}" if len(groups) > 1 else ""
        tokens = "max_model_len"
        if row.kind != "full":
            operands["in_flight"] = (in_flight, "tokens")
            reach = (row.window or 1) - 1 if row.kind == "sliding" else row.chunk or 0
            operands[f"reach{tag}"] = (reach, "tokens")
            tokens = f"min(reach{tag} + in_flight, max_model_len)"
        operands[f"block{tag}"] = (row.block_size, "tokens")
        term = f"ceil_div({tokens}, block{tag})" + (" + 1" if row.kind == "sliding" else "")
        if len(groups) > 1:
            operands[f"groups{tag}"] = (count, "groups")
            term = f"groups{tag} * ({term})"
        terms.append(term)
        total += count * blocks_per_request(row, tokens=length, in_flight=in_flight)
    steps.add(
        "layout.longest_blocks",
        "Blocks of a request of the maximum length",
        " + ".join(terms),
        total,
        "blocks",
        operands,
        "blocks_per_request",
    )
    return total


def _record_context(steps: Derivation, groups: Sequence[KvGroup], traffic: Traffic) -> Fraction:
    """Record the blocks of a request at its mean context by the published reading, without rounding to whole blocks:
    a window holds its tokens and one block more, a chunk at most its tokens."""
    total, terms = Fraction(0), []
    operands: dict[str, Operand] = {"context": (traffic.context, "tokens")}
    for index, (row, count) in enumerate(counted([group.rows[0] for group in groups]).items()):
        block, most = row.block_size, "context"
        held = Fraction(traffic.context)
        operands[f"groups_{index}"], operands[f"block_{index}"] = (count, "groups"), (block, "tokens")
        reach = row.window + block if row.window is not None else row.chunk
        if row.kind != "full" and reach is not None:
            operands[f"reach_{index}"] = (reach, "tokens")
            most, held = f"min(context, reach_{index})", min(held, Fraction(reach))
        terms.append(f"groups_{index} * Fraction({most}) / block_{index}")
        total += count * held / block
    steps.add(
        "layout.context_blocks",
        "Blocks of a request at its mean context",
        " + ".join(terms),
        total,
        "blocks",
        operands,
        "published",
        note="a window holds its tokens and one block more",
    )
    return total
