"""One request in a scenario: its output limit and mean context, and when the server refuses it.

Source rules: `get_max_tokens`, `TokenizeParams.__post_init__` and `InputProcessor._validate_prompt_len` at 0.32.0.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run, StopPlan, refused
from enginemem.units import Exact


class Traffic(NamedTuple):
    """One request, tokens: prompt, output limit after the server's clip, and the mean context of a running request
    (prompt + half the mean output, which is at most the limit)."""

    prompt: int
    limit: int
    context: Exact


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
        note="Clipped by the server." if limit < asked else "Never consulted at admission.",
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
        note="The mean output is the mean before the max_tokens cut.",
    )
    return Traffic(prompt, limit, shown)
