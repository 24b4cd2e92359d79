"""What one token and one request cost in a scenario: the layout's figures with their steps.

Source rules: `vllm/v1/kv_cache_interface.py` and `vllm/v1/core/kv_cache_utils.py` at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from enginemem.architecture import Architecture
from enginemem.derivation import Derivation, NotModeled, Operand
from enginemem.engines.vllm.compressed import (
    CompressedSizes,
    compressed_rows,
    compressed_sizes,
    is_compressed,
    record_packed_bytes,
)
from enginemem.engines.vllm.layout import (
    KvGroup,
    KvRow,
    PagesCannotBeUnifiedError,
    blocks_per_request,
    counted,
    kv_groups,
    max_in_flight_tokens,
    page_bytes,
    token_bytes,
)
from enginemem.engines.vllm.packed import packed_groups
from enginemem.engines.vllm.parameters import Parameters, fixed_blocks, record_parameters
from enginemem.engines.vllm.request import Traffic
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.rows import model_rows
from enginemem.engines.vllm.run import Run, not_modeled
from enginemem.memo import per_model

ATTENTION = ("full", "sliding", "chunked", "mla")
"""Layers whose cache grows with the tokens of a request."""


class KvLayout(NamedTuple):
    """The KV cache of a model on one GPU: its groups, the distinct specs of the groups with their number, attention
    rows with equal ones put together, KV heads of the last kind before any sharding, bytes of one block over all
    layers, bytes of one token in all attention layers (None where some rows stand for several tokens)."""

    groups: Sequence[KvGroup]
    counts: Mapping[KvRow, int]
    attention: Sequence[KvRow]
    kv_heads: int
    block_bytes: int
    token_bytes: int | None


class Costs(NamedTuple):
    """Per GPU: the KV layout, bytes of one block over all layers, bytes of one token, blocks that a request of the
    maximum length takes, tokens scheduled and not settled; `context_blocks` are the blocks of a request at its mean
    context, None where they follow its tokens alone, so that the pool can be told in tokens."""

    layout: KvLayout
    block_bytes: int
    token_bytes: int | None
    longest_blocks: int
    in_flight: int
    context_blocks: Fraction | None
    parameters: Parameters
    state_bytes: int = 0


@per_model
def kv_layout(
    model: Architecture, *, tp: int, dtype: str, block_size: int, sizes: CompressedSizes
) -> KvLayout | NotModeled:
    """The layout on one of `tp` GPUs for a cache of `dtype` in blocks of `block_size` tokens, with prefix caching;
    `sizes` are those of compressed layers."""
    packed = is_compressed(model)
    rows = compressed_rows(model, sizes) if packed else model_rows(model, tp=tp, dtype=dtype, block_size=block_size)
    if isinstance(rows, NotModeled):
        return rows
    try:
        groups = packed_groups(rows) if packed else kv_groups([rows])
    except PagesCannotBeUnifiedError as problem:
        return NotModeled(str(problem))
    attention = [row for row in rows if row.kind != "mamba"]
    kinds = dict.fromkeys([spec._replace(layers=1) for spec in model.layers if spec.kind in ATTENTION])
    return KvLayout(
        groups,
        counted([group.rows[0] for group in groups]),
        merged_rows(attention),
        list(kinds)[-1].kv_heads,
        max([group.layer_bytes[0] for group in groups]),
        None if packed else sum([row.n * token_bytes(row) for row in attention]),
    )


def record_costs(run: Run, setup: Setup, traffic: Traffic | None) -> Costs:
    """Record token and block bytes, the blocks of the longest request and of one at its mean context; raises StopPlan
    for layers that are not modeled."""
    scenario, steps = run.scenario, run.steps
    sizes = compressed_sizes(run.release)
    layout = kv_layout(scenario.model, tp=scenario.tp, dtype=setup.kv_format, block_size=setup.block_size, sizes=sizes)
    if isinstance(layout, NotModeled):
        raise not_modeled(layout.reason)
    groups, block = layout.groups, layout.block_bytes
    in_flight = max_in_flight_tokens(
        pipeline_parallel=1,
        max_num_batched_tokens=setup.step_tokens,
        extra_batches=run.release.integer("in_flight_extra_batches"),
    )
    if is_compressed(scenario.model):
        record_packed_bytes(steps, groups, layout.attention, sizes)
    else:
        _record_bytes(steps, layout, tp=scenario.tp)
    longest = _record_longest(steps, layout, setup, in_flight)
    tokens_alone = len(groups) == 1 and groups[0].kind in ("full_attention", "mla_attention")
    context = None if tokens_alone or traffic is None else _record_context(steps, layout, traffic)
    states = _record_states(steps, groups, block)
    found = record_parameters(steps, layout.counts, block_bytes=block)
    return Costs(layout, block, layout.token_bytes, longest, in_flight, context, found, states)


def _record_bytes(steps: Derivation, layout: KvLayout, *, tp: int) -> None:
    groups, merged, block, each = layout.groups, layout.attention, layout.block_bytes, layout.token_bytes
    # Index keys stand beside keys and values in some classes: the step of one layer is that of the latter.
    row = next((row for row in reversed(merged) if row.kind != "mla"), merged[-1])
    steps.add(
        "layout.kv_heads",
        "KV heads on one GPU",
        "max(1, kv_heads // tp)" if row.kind != "mla" else "kv_heads",
        row.kv_heads,
        "heads",
        {"kv_heads": (layout.kv_heads, "heads")} | ({} if row.kind == "mla" else {"tp": (tp, "GPUs")}),
        "kv_heads",
        note="One latent row a token, whole on every GPU."
        if row.kind == "mla"
        else "Replicated: there are more GPUs than KV heads."
        if tp > layout.kv_heads
        else None,
    )
    _record_layer_token(steps, row)
    operands: dict[str, Operand] = {}
    for index, other in enumerate(merged):
        operands[f"layers_{index}"] = (other.n, "layers")
        operands[f"bytes_{index}"] = (token_bytes(other), "bytes")
    terms = " + ".join([f"layers_{index} * bytes_{index}" for index in range(len(merged))])
    steps.add("layout.token_bytes", "KV bytes per token", terms, each, "bytes", operands, "page")
    # After page unification every layer of every group has the same page; in a single group pages may differ.
    largest = max(groups, key=lambda group: group.layer_bytes[0])
    mixed = largest.layers[0] * page_bytes(largest.rows[0]) != block
    operands = {"layers": (largest.layers[0], "layers"), "page": (page_bytes(largest.rows[0]), "bytes")}
    if mixed:
        operands = {"token_bytes": (each, "bytes"), "block": (largest.block_size, "tokens")}
    steps.add(
        "layout.block_bytes",
        "Bytes of one block",
        "token_bytes * block" if mixed else "layers * page",
        block,
        "bytes",
        operands,
        "groups",
        note=None if len(groups) == 1 else f"{len(groups)} KV groups share the pool's blocks.",
    )


def merged_rows(rows: Sequence[KvRow]) -> list[KvRow]:
    """Rows that differ only in their count, put together in order of first appearance."""
    counts: dict[KvRow, int] = {}
    for row in rows:
        one = row._replace(n=1)
        counts[one] = counts.get(one, 0) + row.n
    return [row._replace(n=count) for row, count in counts.items()]


def _record_layer_token(steps: Derivation, row: KvRow) -> None:
    """Record the bytes of one token in one layer (of the last kind, where layers differ)."""
    operands: dict[str, Operand] = {"kv_heads": (row.kv_heads, "heads"), "head_size": (row.head_size, "elements")}
    note = None
    if row.state_content_bytes is not None:
        expression, operands = "row", {"row": (row.state_content_bytes, "bytes")}
        note = "FP8 values with their scales, and 16-bit rotary values."
    elif row.kind == "mla":
        expression = "kv_heads * head_size * element"
        operands["element"] = (token_bytes(row) // row.head_size, "bytes")
    elif row.dtype == "nvfp4":
        expression = "2 * kv_heads * (head_size // 2 + head_size // 16)"
        note = "4-bit values and an FP8 scale for every 16 of them."
    elif row.v_head_size is not None:
        expression = "kv_heads * (head_size + v_head_size) * element"
        operands["v_head_size"] = (row.v_head_size, "elements")
        width = row.kv_heads * (row.head_size + row.v_head_size)
        operands["element"] = (token_bytes(row) // width, "bytes")
    else:
        expression = "2 * kv_heads * head_size * element"
        operands["element"] = (token_bytes(row) // (2 * row.kv_heads * row.head_size), "bytes")
    steps.add(
        "layout.layer_token",
        "One token in one layer",
        expression,
        token_bytes(row),
        "bytes",
        operands,
        "page",
        note=note,
    )


def _record_states(steps: Derivation, groups: Sequence[KvGroup], block: int) -> int:
    """Record the bytes that recurrent states take for one request whatever its length; 0 without such layers."""
    states = [group.rows[0] for group in groups if group.kind == "mamba"]
    if not states:
        return 0
    each = blocks_per_request(states[0], tokens=1, in_flight=0)
    value = len(states) * each * block
    steps.add(
        "layout.state_bytes",
        "Recurrent states of one request",
        "groups * blocks * block_bytes",
        value,
        "bytes",
        {"groups": (len(states), "groups"), "blocks": (each, "blocks"), "block_bytes": (block, "bytes")},
        "blocks_per_request",
        note="Whatever its length: the running state and those kept for the prefix cache.",
    )
    return value


def _record_longest(steps: Derivation, layout: KvLayout, setup: Setup, in_flight: int) -> int:
    """Record the blocks that a request of the maximum length takes, group by group of the same spec."""
    length, groups, terms, total = setup.max_model_len, layout.groups, [], 0
    operands: dict[str, Operand] = {"max_model_len": (length, "tokens")}
    for index, (row, count) in enumerate(layout.counts.items()):
        tag = f"_{index}" if len(groups) > 1 else ""
        held = blocks_per_request(row, tokens=length, in_flight=in_flight)
        tokens = "max_model_len"
        if row.kind == "mamba":
            operands[f"states{tag}"] = (held, "blocks")
            term = f"states{tag}"
        else:
            if row.kind in ("sliding", "chunked"):
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
        total += count * held
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


def _record_context(steps: Derivation, layout: KvLayout, traffic: Traffic) -> Fraction:
    """Record the blocks of a request at its mean context by the published reading, without rounding to whole blocks:
    a window holds its tokens and one block more, a chunk at most its tokens, a recurrent layer one state."""
    total, terms = Fraction(0), []
    operands: dict[str, Operand] = {"context": (traffic.context, "tokens")}
    for index, (row, count) in enumerate(layout.counts.items()):
        if row.kind == "mamba":
            operands[f"groups_{index}"], operands[f"states_{index}"] = (count, "groups"), (fixed_blocks(row), "blocks")
            terms.append(f"groups_{index} * states_{index}")
            total += count * fixed_blocks(row)
            continue
        block, most = row.block_size, "context"
        held = Fraction(traffic.context)
        operands[f"groups_{index}"], operands[f"block_{index}"] = (count, "groups"), (block, "tokens")
        reach = row.window + block if row.window is not None else row.chunk
        if row.kind in ("sliding", "chunked") and reach is not None:
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
        note="A window holds its tokens and one block more.",
    )
    return total
