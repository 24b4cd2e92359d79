"""One request of a scenario: what it may ask for after the engine's clips, with its steps."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.derivation import Operand
from enginemem.engines.sglang import admission as rules
from enginemem.engines.sglang.run import Run, StopPlan
from enginemem.engines.sglang.serve import Server


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
        "Output limit of a request",
        "max(0, min(asked, min(context, pool) - margin - prompt - 1, pool - round_up(prompt, page) - page - 1))",
        max_new,
        "tokens",
        operands,
        "request_clip",
        role="limit",
        note="Clipped by the engine." if max_new < asked else None,
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
