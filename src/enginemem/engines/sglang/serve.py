"""The started server of one scenario: its pool, request cap and graphs, with their steps."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from enginemem.derivation import Operand
from enginemem.engines.plan import SetBy
from enginemem.engines.sglang.cell import record_cell, record_parameters, record_tokens
from enginemem.engines.sglang.compressed import record_compressed
from enginemem.engines.sglang.dispatch import captured_decode_graphs, graph_note
from enginemem.engines.sglang.grant import Free
from enginemem.engines.sglang.layout import kv_cell, kv_element_bytes
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.pool import Tokens, request_cap, table_bytes
from enginemem.engines.sglang.resolve import DISABLED, Configuration
from enginemem.engines.sglang.run import Run, StopPlan
from enginemem.units import GIB


class Server(NamedTuple):
    """A started server: pool and page in tokens, its request cap and context length, and the tokens of the pool of
    window layers where they have one."""

    tokens: int
    page: int
    cap: int
    context: int
    window: int | None = None


def record_pool(
    run: Run, model: ModelFacts, options: Options, config: Configuration, free: Free, *, major: int
) -> Server:
    """Tokens, request cap and table; stops the plan when the pool holds nothing."""
    plan, page = run.plan, config.page_size
    plan.kv_pool_bytes = free.pool
    if model.compressed is not None:
        found = record_compressed(run, model, config, pool=free.pool)
    else:
        found = _record_plain(run, model, options, config, free, major=major)
    tokens = found.full
    plan.page_tokens, plan.blocks, plan.kv_tokens, plan.kv_tokens_logged = page, tokens // page, tokens, tokens
    context = options.context_length or model.context
    cap = _record_cap(run, config, free, tokens=tokens, context=context)
    if cap <= 0:
        raise StopPlan(
            "does_not_fit",
            f"the pool holds {tokens:,} tokens, too few for one request: raise sglang.mem_fraction_static",
            binds="does_not_fit",
        )
    _record_table(run, config, free, cap=cap, context=context)
    asked: SetBy = "default" if options.max_running_requests is None else "user"
    run.resolved("max_running_requests", cap, asked if cap == config.max_running_requests else "derived")
    run.resolved("context_length", context, "default" if options.context_length is None else "user")
    plan.step_token_budget = (
        config.chunked_prefill_size if config.chunked_prefill_size > 0 else config.max_prefill_tokens
    )
    plan.log_line = (
        f"max_total_num_tokens={tokens}, chunked_prefill_size={config.chunked_prefill_size}, "
        f"max_prefill_tokens={config.max_prefill_tokens}, max_running_requests={cap}, context_len={context}"
    )
    return Server(tokens, page, cap, context, found.window)


def _record_plain(
    run: Run, model: ModelFacts, options: Options, config: Configuration, free: Free, *, major: int
) -> Tokens:
    """Bytes and tokens of a pool whose layers keep a row for every token."""
    plan, release, page = run.plan, run.release, config.page_size
    element = kv_element_bytes(release, config.kv_cache_dtype) or 0
    cell = kv_cell(release, model, options, kv_cache_dtype=config.kv_cache_dtype, element_bytes=element, major=major)
    record_cell(run, model, options, config, cell, element=element, major=major)
    found = record_tokens(run, model, cell, pool=free.pool, page=page)
    plan.kv_bytes_per_token, plan.kv_bytes_all_layers = cell.full, cell.full + cell.window
    plan.kv_fixed_bytes_per_request = record_parameters(run, model, cell, free.states, page=page)
    return found


def _record_cap(run: Run, config: Configuration, free: Free, *, tokens: int, context: int) -> int:
    release, requested = run.release, config.max_running_requests
    cap = request_cap(release, tokens=tokens, context=context, requested=requested)
    each: Operand = (release.integer("request_cap_tokens"), "tokens")
    if requested is not None:
        expression = "min(requested, tokens // each)"
        operands: dict[str, Operand] = {
            "requested": (requested, "requests"),
            "tokens": (tokens, "tokens"),
            "each": each,
        }
    else:
        expression = "min(clamp(int(tokens / context * factor), low, high), tokens // each)"
        operands = {
            "tokens": (tokens, "tokens"),
            "context": (context, "tokens"),
            "factor": (release.integer("request_cap_factor"), "requests"),
            "low": (release.integer("request_cap_low"), "requests"),
            "high": (release.integer("request_cap_high"), "requests"),
            "each": each,
        }
    if free.states is not None:
        slots, each_request = free.states.slots, free.states.per_request
        expression = f"min({expression}, slots // slots_a_request)"
        operands |= {"slots": (slots, "slots"), "slots_a_request": (each_request, "slots")}
        cap = min(cap, slots // each_request)
    run.steps.add("pool.request_cap", "Request cap", expression, cap, "requests", operands, "request_cap", role="limit")
    return cap


def _record_table(run: Run, config: Configuration, free: Free, *, cap: int, context: int) -> None:
    release, steps = run.release, run.steps
    table = table_bytes(release, requests=cap, context=context)
    operands: dict[str, Operand] = {
        "cap": (cap, "requests"),
        "context": (context, "tokens"),
        "extra": (release.integer("table_extra_tokens"), "tokens"),
        "entry": (release.integer("table_entry_bytes"), "bytes"),
    }
    steps.add(
        "pool.table",
        "Request table, inside the slack",
        "(cap + 1) * (context + extra) * entry",
        table,
        "bytes",
        operands,
        "request_table",
    )
    runtime: int | Fraction = run.scenario.runtime
    slack = free.before * (1 - config.mem_fraction_static)
    left = slack - float((table + runtime) / GIB)
    operands = {
        "slack": (slack, "GiB"),
        "table": (table, "bytes"),
        "runtime": (runtime, "bytes"),
        "gib": (GIB, "bytes a GiB"),
    }
    steps.add(
        "pool.slack_left",
        "Slack beside table and runtime memory",
        "slack - float((table + runtime) / gib)",
        left,
        "GiB",
        operands,
        "profile",
        note="For information: the runtime assumption does not enter the pool; below zero the server may run out of memory.",
    )


def record_dispatch(run: Run, config: Configuration, server: Server, *, running: int) -> None:
    """The largest captured decode graph and whether the decode step of `running` requests replays one."""
    plan, steps = run.plan, run.steps
    graphs = captured_decode_graphs(
        config.decode_graph_max_bs, request_cap=server.cap, running=running, sizes=config.decode_graph_sizes
    )
    operands: dict[str, Operand] = {
        "configured": (config.decode_graph_max_bs, "requests"),
        "cap": (server.cap, "requests"),
    }
    steps.add(
        "dispatch.largest",
        "Largest captured decode graph",
        "min(configured, cap)",
        graphs.largest,
        "requests",
        operands,
        "capture",
        role="limit",
    )
    plan.largest_decode_graph, plan.in_graph = graphs.largest, running <= graphs.largest
    operands = {"running": (running, "requests"), "largest": (graphs.largest, "requests")}
    note = graph_note(
        graphs,
        running=running,
        prefill_graphs=config.prefill_graph_backend != DISABLED and config.prefill_graph_count > 0,
        prefill_largest=config.prefill_graph_max_tokens,
    )
    steps.add(
        "dispatch.in_graph",
        "Decode step replays a graph",
        "running <= largest",
        plan.in_graph,
        "",
        operands,
        "decode_replay",
        "prefill_replay",
        note=note,
    )
    plan.graph_note = note
