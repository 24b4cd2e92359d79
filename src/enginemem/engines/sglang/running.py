"""The requests of one scenario: what they may ask for and how many run, with their steps."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from enginemem.derivation import Operand
from enginemem.engines.plan import SteadyState
from enginemem.engines.sglang import admission as rules
from enginemem.engines.sglang.burst import burst_size
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Run, StopPlan
from enginemem.engines.sglang.serve import Server
from enginemem.engines.sglang.steady import Demand, steady_state
from enginemem.release import load_release
from enginemem.traffic import OutputMoments, Shape, output_moments


class Load(NamedTuple):
    """Traffic as admission sees it: prompt, output limit after the clips, its booked part; tokens."""

    prompt: int
    max_new: int
    booked: int


def record_request(run: Run, server: Server) -> Load:
    """The output limit after the engine's clips; stops the plan when the request is refused."""
    scenario, release, steps = run.scenario, run.release, run.steps
    prompt, asked = scenario.prompt, scenario.max_tokens
    tokens, page, context = server.tokens, server.page, server.context
    problem = rules.request_problem(release, prompt=prompt, max_tokens=asked, context=context, tokens=tokens)
    if problem is not None:
        raise StopPlan("refused", problem, binds="prompt_limit")
    margin = release.integer("request_length_margin")
    max_new = rules.effective_max_new(
        asked=asked, prompt=prompt, context=context, tokens=tokens, page=page, margin=margin
    )
    operands: dict[str, Operand] = {
        "asked": (asked, "tokens"),
        "context": (context, "tokens"),
        "pool": (tokens, "tokens"),
        "margin": (margin, "tokens"),
        "prompt": (prompt, "tokens"),
        "page": (page, "tokens"),
    }
    steps.add(
        "admission.max_new",
        "Output limit after the clips",
        "max(0, min(asked, min(context, pool) - margin - prompt - 1, pool - round_up(prompt, page) - page - 1))",
        max_new,
        "tokens",
        operands,
        "request_clip",
        role="limit",
        note="clipped by the engine" if max_new < asked else None,
    )
    clip = release.integer("clip_max_new_tokens")
    booked = min(max_new, clip)
    if prompt + booked + page >= tokens:
        raise StopPlan(
            "refused",
            f"a prompt of {prompt:,} tokens and the page kept beside it never fit the pool of {tokens:,} tokens",
            binds="prompt_limit",
        )
    run.plan.output_limit = max_new
    operands = {"max_new": (max_new, "tokens"), "clip": (clip, "tokens")}
    steps.add(
        "admission.booked",
        "Output that admission reckons with",
        "min(max_new, clip)",
        booked,
        "tokens",
        operands,
        "prefill_adder",
        role="limit",
    )
    return Load(prompt, max_new, booked)


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
        note=f"after {release.integer('new_token_ratio_decay_steps')} decode steps without a retraction",
    )
    return ratio


def record_running(run: Run, config: Configuration, server: Server, load: Load) -> int:
    """Published counts, burst and steady state, each a step; returns the published count after idle."""
    scenario, release, plan, steps = run.scenario, run.release, run.plan, run.steps
    ratio = _record_ratio(run)
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
        note="the engine keeps a whole page instead of one token" if server.page > 1 else None,
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
    steps.add(
        "admission.running",
        "Requests running, published rule",
        "max(0, min(cap, 1 + floor((tokens - keep) / (prompt + ratio * booked))))",
        running,
        "requests",
        {**common, "ratio": (ratio.init, "")},
        "published",
    )
    mean = scenario.mean_output
    plan.running_decayed = rules.decayed_running(
        tokens=tokens, keep=keep, prompt=prompt, booked=load.booked, mean_output=mean, ratio=ratio.floor, cap=cap
    )
    steps.add(
        "admission.decayed",
        "Requests running once the ratio has decayed, published rule",
        "max(0, min(cap, 1 + floor((tokens - keep) / (prompt + Fraction(mean, 2) + ratio * max(0, booked - "
        "Fraction(mean, 2))))))",
        plan.running_decayed,
        "requests",
        {**common, "ratio": (ratio.floor, ""), "mean": (mean, "tokens")},
        "published",
    )
    plan.running, plan.binds = running, "request_cap" if running >= cap else "kv_memory"
    plan.running_burst = _record_burst(run, config, server, load, ratio=ratio.init)
    plan.running_steady = _record_steady(run, config, server, load, floor=ratio.floor)
    return running


def _record_burst(run: Run, config: Configuration, server: Server, load: Load, *, ratio: Fraction) -> int:
    clip = run.release.integer("clip_max_new_tokens")
    chunk, limit = config.chunked_prefill_size, config.max_prefill_tokens
    count = burst_size(server.tokens, server.page, load.prompt, load.max_new, chunk, limit, ratio, server.cap, clip)
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
    run.steps.add(
        "admission.burst",
        "First decode batch after idle",
        "burst(pool, page, prompt, max_new, chunk, limit, ratio, cap, clip)",
        count,
        "requests",
        operands,
        "prefill_pass",
        "prefill_adder",
        note="prefill passes under an endless queue until admission stops: newcomers are booked in full in their own pass",
    )
    return count


def cut_moments(shape: Shape, mean: int, limit: int) -> OutputMoments:
    """Moments of the output under a limit that the engine's clip may have set below the mean."""
    limit = max(1, limit)
    return output_moments(shape=shape, mean=min(mean, limit) if shape == "fixed" else mean, limit=limit)


def output_mean(shape: Shape, mean: int, limit: int) -> float:
    """Mean output after the cut, tokens."""
    return cut_moments(shape, mean, limit).mean


def output_progress(shape: Shape, mean: int, limit: int) -> float:
    """Mean tokens that a running request has behind it, seen at random times: E[L(L-1)/2] / E[L]."""
    moments = cut_moments(shape, mean, limit)
    return moments.pairs / moments.mean


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


def _record_steady(run: Run, config: Configuration, server: Server, load: Load, *, floor: Fraction) -> SteadyState:
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
        "Mean output behind a running request",
        "output_progress(shape, mean, max_new)",
        moments.pairs / moments.mean,
        "tokens",
        cut,
        "steady_law",
        note="longer outputs are seen more often",
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
        "Mean running requests in the long run",
        "steady_mean(release, pool, page, prompt, max_new, shape, mean, floor, chunk, limit, cap)",
        state.mean,
        "requests",
        operands,
        "steady_law",
        "retraction",
        note=f"{state.law}, regime {state.regime}",
    )
    return state
