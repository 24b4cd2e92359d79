"""How many requests of one scenario run, with their steps."""

from __future__ import annotations

from fractions import Fraction

from enginemem.derivation import Operand
from enginemem.engines.plan import SteadyState
from enginemem.engines.sglang import admission as rules
from enginemem.engines.sglang.burst import burst_size
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.output import cut_moments
from enginemem.engines.sglang.request import Load
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Run
from enginemem.engines.sglang.serve import Server
from enginemem.engines.sglang.steady import Demand, half_width, steady_state
from enginemem.engines.sglang.window import (
    WindowPool,
    record_window,
    record_window_decayed,
    record_window_steady,
    window_in_force,
)
from enginemem.release import load_release
from enginemem.traffic import Shape

_STEADY = "Requests running in the steady state"


def _record_ratio(run: Run) -> rules.TokenRatio:
    release, steps = run.release, run.steps
    given = run.scenario.values["sglang.schedule_conservativeness"]
    conservativeness = given if isinstance(given, (int, Fraction)) else None
    ratio = rules.token_ratio(release, conservativeness)
    start, decayed = rules.start_ratio(release), rules.decay_factor(release)
    operands: dict[str, Operand] = {
        "start": (start, ""),
        "conservativeness": (1 if conservativeness is None else conservativeness, ""),
    }
    steps.add(
        "admission.ratio",
        "Share of the output that is booked, after idle",
        "min(start * conservativeness, Fraction(1))",
        ratio.init,
        "",
        operands,
        "token_ratio",
    )
    operands = {"ratio": (ratio.init, ""), "factor": (decayed, "")}
    steps.add(
        "admission.floor",
        "The same, decayed",
        "min(ratio * factor, Fraction(1))",
        ratio.floor,
        "",
        operands,
        "token_ratio",
        note=f"After {release.integer('new_token_ratio_decay_steps')} decode steps without a retraction.",
    )
    return ratio


def record_running(run: Run, model: ModelFacts, config: Configuration, server: Server, load: Load) -> int:
    """Published counts, burst and steady state, each a step; returns the published count after idle."""
    scenario, release, plan, steps = run.scenario, run.release, run.plan, run.steps
    ratio = _record_ratio(run)
    window = window_in_force(model, server, prompt=load.prompt, max_new=load.max_new, booked=load.booked)
    one = release.integer("published_keep")
    keep = load.prompt + load.booked + one
    operands: dict[str, Operand] = {
        "prompt": (load.prompt, "tokens"),
        "booked": (load.booked, "tokens"),
        "one": (one, "tokens"),
    }
    steps.add(
        "admission.keep",
        "Kept free for the next request",
        "prompt + booked + one",
        keep,
        "tokens",
        operands,
        "published",
        "prefill_adder",
        role="subtract",
        note="The engine keeps a whole page instead of one token." if server.page > 1 else None,
    )
    tokens, cap, prompt = server.tokens, server.cap, load.prompt
    common: dict[str, Operand] = {
        "tokens": (tokens, "tokens"),
        "keep": (keep, "tokens"),
        "prompt": (prompt, "tokens"),
        "booked": (load.booked, "tokens"),
        "cap": (cap, "requests"),
    }
    running = rules.published_running(
        tokens=tokens, keep=keep, prompt=prompt, booked=load.booked, ratio=ratio.init, cap=cap
    )
    expression, operands = "max(0, min(cap, 1 + floor((tokens - keep) / (prompt + ratio * booked))))", dict(common)
    if window is not None:
        by_window = record_window(run, window, page=server.page, booked=load.booked)
        running, expression = min(running, by_window), f"min(by_window, {expression})"
        operands["by_window"] = (by_window, "requests")
    steps.add(
        "admission.running",
        "Requests running, published rule",
        expression,
        running,
        "requests",
        {**operands, "ratio": (ratio.init, "")},
        "published",
    )
    mean = scenario.mean_output
    decayed = rules.decayed_running(
        tokens=tokens, keep=keep, prompt=prompt, booked=load.booked, mean_output=mean, ratio=ratio.floor, cap=cap
    )
    expression = (
        "max(0, min(cap, 1 + floor((tokens - keep) / (prompt + Fraction(mean, 2) + ratio * max(0, booked - "
        "Fraction(mean, 2))))))"
    )
    operands = {**common, "ratio": (ratio.floor, ""), "mean": (mean, "tokens")}
    if window is not None:
        by_window = record_window_decayed(run, window, mean_output=mean)
        decayed, expression = min(decayed, by_window), f"min(by_window, {expression})"
        operands["by_window"] = (by_window, "requests")
    steps.add(
        "admission.decayed",
        "Requests running once the ratio has decayed, published rule",
        expression,
        decayed,
        "requests",
        operands,
        "published",
    )
    plan.running_decayed = decayed
    plan.running, plan.binds = running, "request_cap" if running >= cap else "kv_memory"
    plan.running_burst = _record_burst(run, config, server, load, ratio=ratio.init, window=window)
    plan.running_steady = _record_steady(run, config, server, load, floor=ratio.floor, window=window)
    return running


def _record_burst(
    run: Run, config: Configuration, server: Server, load: Load, *, ratio: Fraction, window: WindowPool | None
) -> int:
    clip = run.release.integer("clip_max_new_tokens")
    chunk, limit = config.chunked_prefill_size, config.max_prefill_tokens
    latch, tokens, span = server.window is None, None, 0
    if window is not None:
        tokens, span = window.tokens, window.span
    count = burst_size(
        server.tokens,
        server.page,
        load.prompt,
        load.max_new,
        chunk,
        limit,
        ratio,
        server.cap,
        clip,
        latch=latch,
        window=tokens,
        span=span,
    )
    operands: dict[str, Operand] = {
        "pool": (server.tokens, "tokens"),
        "page": (server.page, "tokens"),
        "prompt": (load.prompt, "tokens"),
        "max_new": (load.max_new, "tokens"),
        "chunk": (chunk, "tokens"),
        "limit": (limit, "tokens"),
        "ratio": (ratio, ""),
        "cap": (server.cap, "requests"),
        "clip": (clip, "tokens"),
    }
    expression = "burst(pool, page, prompt, max_new, chunk, limit, ratio, cap, clip)"
    if not latch:
        operands |= {"latch": (latch, ""), "window": (tokens, "tokens"), "span": (span, "tokens")}
        expression = f"{expression[:-1]}, latch=latch, window=window, span=span)"
    run.steps.add(
        "admission.burst",
        "First decode batch after idle",
        expression,
        count,
        "requests",
        operands,
        "prefill_pass",
        "prefill_adder",
        note="Prefill passes under an endless queue until admission stops: newcomers are booked in full in their own pass.",
    )
    return count


def steady_mean(
    release: str,
    pool: int,
    page: int,
    prompt: int,
    max_new: int,
    shape: Shape,
    mean: int,
    floor: Fraction,
    chunk: int,
    limit: int,
    cap: int,
) -> float:
    """Mean of the steady state, for a step; see steady.steady_state."""
    moments = cut_moments(shape, mean, max_new)
    demand = Demand(pool, page, prompt, max_new, moments, shape, Fraction(floor), chunk, limit, cap)
    return steady_state(load_release("sglang", release), demand).mean


def _record_steady(
    run: Run, config: Configuration, server: Server, load: Load, *, floor: Fraction, window: WindowPool | None
) -> SteadyState:
    scenario, release, steps = run.scenario, run.release, run.steps
    shape, mean = scenario.shape, scenario.mean_output
    moments = cut_moments(shape, mean, load.max_new)
    cut: dict[str, Operand] = {"shape": (shape, ""), "mean": (mean, "tokens"), "max_new": (load.max_new, "tokens")}
    steps.add(
        "admission.output",
        "Mean output after the cut",
        "output_mean(shape, mean, max_new)",
        moments.mean,
        "tokens",
        cut,
        "steady_law",
    )
    steps.add(
        "admission.progress",
        "Mean progress of a running request",
        "output_progress(shape, mean, max_new)",
        moments.pairs / moments.mean,
        "tokens",
        cut,
        "steady_law",
        note="Longer outputs are in flight for longer.",
    )
    chunk, limit = config.chunked_prefill_size, config.max_prefill_tokens
    demand = Demand(
        server.tokens, server.page, load.prompt, load.max_new, moments, shape, floor, chunk, limit, server.cap
    )
    state = steady_state(release, demand)
    operands: dict[str, Operand] = {
        "release": (release.release, ""),
        "pool": (server.tokens, "tokens"),
        "page": (server.page, "tokens"),
        "prompt": (load.prompt, "tokens"),
        **cut,
        "floor": (floor, ""),
        "chunk": (chunk, "tokens"),
        "limit": (limit, "tokens"),
        "cap": (server.cap, "requests"),
    }
    steps.add(
        "admission.steady",
        _STEADY if window is None else f"{_STEADY}, by the full pool",
        "steady_mean(release, pool, page, prompt, max_new, shape, mean, floor, chunk, limit, cap)",
        state.mean,
        "requests",
        operands,
        "steady_law",
        "retraction",
        note=f"Law: {state.law}. Shaped by: {state.regime.replace('_', ' ')}.",
    )
    if window is None:
        return state
    half, progress = half_width(release, demand, state.mean), moments.pairs / moments.mean
    return record_window_steady(run, window, state, progress=progress, half=half, server=server)
