"""Admission by the pool of window layers.

Requests whose prompt and output each stay inside a window fill both pools alike, and the count follows. Others keep the
last window of their prompt locked in the prefix cache, and the window of their outputs beside it: where that may bind,
the plan says that it is not modelled.

The window test books a newcomer's whole output for the pass that admits it and nothing afterwards: running requests
count with what they hold, and what then overflows is retracted. Source rules: mem_cache/prefill_budget.py
estimate_swa_kv_tokens and SWAPrefillBudget at 0.5.22.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

from enginemem.derivation import Operand
from enginemem.engines.plan import SteadyState
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.output import cut_moments
from enginemem.engines.sglang.pool import own_window
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Run, StopPlan
from enginemem.engines.sglang.serve import Server
from enginemem.units import round_up

LAW = "window pool less one whole request, over what a running request holds"


class WindowPool(NamedTuple):
    """A window pool in force, tokens: its size, what one newcomer must find free, a prompt in whole pages, the window."""

    tokens: int
    needed: int
    prompt: int
    span: int


def window_in_force(model: ModelFacts, server: Server, *, prompt: int, max_new: int, booked: int) -> WindowPool | None:
    """The window pool where neither prompt nor output outgrows the window; None without such a pool, or elsewhere.

    The prompt stays locked in the prefix cache as long as the request runs, and its outputs are not evicted before they
    outgrow a window of their own (SWAComponent.acquire_component_lock, ScheduleBatch.maybe_evict_swa).
    """
    pages = round_up(prompt, server.page)
    if model.window is None or server.window is None or max(pages, max_new) > model.window.tokens:
        return None
    span = model.window.tokens
    return WindowPool(server.window, min(pages + booked, span) + server.page, pages, span)


def running_in_window(pool: WindowPool, *, held: int, halves: int = 0) -> int:
    """Requests that enter while the pool keeps room for one more, when those inside hold `held` + `halves` / 2 tokens."""
    return max(0, 1 + 2 * (pool.tokens - pool.needed) // (2 * held + halves))


def record_window(run: Run, pool: WindowPool, *, page: int, booked: int) -> int:
    """Record the room that a newcomer must find and the requests by the window pool after idle; returns the latter.

    Stops the plan where not even one request fits whole: such prompts are cut into chunks that fit.
    """
    run.steps.add(
        "admission.window_needed",
        "Window tokens that a newcomer must find free",
        "min(prompt + booked, span) + page",
        pool.needed,
        "tokens",
        {
            "prompt": (pool.prompt, "tokens"),
            "booked": (booked, "tokens"),
            "span": (pool.span, "tokens"),
            "page": (page, "tokens"),
        },
        "prefill_budget",
        role="subtract",
        note="Neither prompt nor output outgrows the window, so the window layers hold all tokens of a running request.",
    )
    if pool.tokens <= pool.needed:
        raise StopPlan(
            "not_modeled",
            f"the window pool of {pool.tokens:,} tokens does not hold the {pool.needed:,} that one request asks for: "
            "prompts cut to chunks that fit are not modeled",
        )
    found = running_in_window(pool, held=pool.prompt)
    run.steps.add(
        "admission.window_running",
        "Requests by the window pool, after idle",
        "max(0, 1 + (window - needed) // prompt)",
        found,
        "requests",
        {
            "window": (pool.tokens, "tokens"),
            "needed": (pool.needed, "tokens"),
            "prompt": (pool.prompt, "tokens"),
        },
        "prefill_budget",
        "window_lock",
        role="limit",
    )
    return found


def record_window_decayed(run: Run, pool: WindowPool, *, mean_output: int) -> int:
    """Record the requests by the window pool when each holds half its mean output."""
    found = running_in_window(pool, held=pool.prompt, halves=mean_output)
    operands: dict[str, Operand] = {
        "window": (pool.tokens, "tokens"),
        "needed": (pool.needed, "tokens"),
        "prompt": (pool.prompt, "tokens"),
        "mean": (mean_output, "tokens"),
    }
    run.steps.add(
        "admission.window_decayed",
        "Requests by the window pool, mid-flight",
        "max(0, 1 + floor((window - needed) / (prompt + Fraction(mean, 2))))",
        found,
        "requests",
        operands,
        "prefill_budget",
        role="limit",
    )
    return found


def record_window_steady(
    run: Run, pool: WindowPool, state: SteadyState, *, progress: float, half: float, server: Server
) -> SteadyState:
    """Record the window pool's law and return the state that it or the full pool's law gives, whichever is lower.

    `progress` are the tokens that a running request has behind it, `half` the law's relative accuracy. Equal lengths
    keep the full pool's relative interval: cohorts in step swing as widely in both pools.
    """
    page = server.page
    held = pool.prompt + progress + (page - 1) / 2
    count = max(0.0, (pool.tokens - pool.needed) / held)
    run.steps.add(
        "admission.window_steady",
        "Requests running in the steady state, by the window pool",
        "max(0.0, (window - needed) / (prompt + progress + (page - 1) / 2))",
        count,
        "requests",
        {
            "window": (pool.tokens, "tokens"),
            "needed": (pool.needed, "tokens"),
            "prompt": (pool.prompt, "tokens"),
            "progress": (progress, "tokens"),
            "page": (page, "tokens"),
        },
        "steady_law",
        "prefill_budget",
        role="limit",
    )
    if count >= state.mean:
        return state
    low, high = count * (1 - half), count * (1 + half)
    if run.scenario.shape == "fixed":
        low, high = min(low, count * state.low / state.mean), max(high, count * state.high / state.mean)
    return SteadyState(count, low, min(high, float(server.cap)), LAW, "memory")


def check_window_pool(run: Run, model: ModelFacts, config: Configuration, server: Server) -> None:
    """Stop the plan where requests outgrow the window and its pool may limit them.

    Reckoned with what they hold on average, four standard deviations of the outputs' sum, the passes in flight, and the
    room that a newcomer must find; the pool is ample for every plan that this lets through.
    """
    if model.window is None or server.window is None:
        return
    plan, scenario, page = run.plan, run.scenario, server.page
    limit, span = plan.output_limit or 0, model.window.tokens
    prompt = round_up(scenario.prompt, page)
    if max(prompt, limit) <= span:
        return  # the pool is in force (`window_in_force`)
    steady = plan.running_steady
    most = max(plan.running or 0, plan.running_burst or 0, 0 if steady is None else int(steady.high) + 1)
    moments = cut_moments(scenario.shape, scenario.mean_output, limit)
    own = min(int(moments.pairs / moments.mean) + 1, own_window(run.release, window=span, page=page))
    chunk = max(config.chunked_prefill_size, 0) or prompt
    needed = max(min(prompt, chunk) - span, 0) + min(prompt + limit, span) + page
    flying = run.release.integer("swa_chunks_overlap") * chunk + page
    held = most * (min(prompt, round_up(span, page)) + own + page) + 4 * own * (isqrt(most) + 1) + flying + needed
    if held > server.window:
        raise StopPlan(
            "not_modeled",
            f"{most:,} requests may hold {held:,} tokens of the window pool's {server.window:,}: admission where that "
            "pool binds and requests outgrow the window is not modeled",
        )
