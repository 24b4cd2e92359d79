"""The answer itself: for each engine the published count and the steady range, tokens and what binds; the finding."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from enginemem.columns import KEPT
from enginemem.comparison import Comparison
from enginemem.engines.plan import EnginePlan
from enginemem.release import load_release
from enginemem.render import figures
from enginemem.render.markup import escape, figure, name, title
from enginemem.scenario import Scenario
from enginemem.units import round_half_up

_SENTENCES = {
    "kv_memory": "KV memory binds",
    "request_cap": "Request cap binds",
    "token_budget": "Step token budget binds",
    "prompt_limit": "Prompt limit binds",
    "does_not_fit": "Does not fit",
}
_LONG = 9


def describe(scenario: Scenario) -> str:
    """The scenario in one line."""
    replica = f"{scenario.tp} x {scenario.gpu.name}" if scenario.tp > 1 else scenario.gpu.name
    return (
        f"{scenario.model.name} on {replica}: prompt {scenario.prompt:,}, max_tokens {scenario.max_tokens:,}, "
        f"mean output {scenario.mean_output:,} tokens"
    )


def steady_range(plan: EnginePlan) -> str:
    """The steady interval as `205–213`, one number when its ends agree once rounded."""
    state = plan.running_steady
    if state is None:
        return figures.DASH
    low, high = (round_half_up(Fraction(value)) for value in (state.low, state.high))
    return low if low == high else f"{low}–{high}"


def _steady_label(column: str, plan: EnginePlan) -> str:
    state = plan.running_steady
    if state is None:
        return "steady state"
    mean = round_half_up(Fraction(state.mean))
    return "steady state" if mean == steady_range(plan) else f"steady, mean {figure(f'{column}.mean', mean)}"


def cards(comparison: Comparison) -> str:
    """One card an engine; a plan that is not ok says so and why."""
    return "".join([_card(column, plan) for column, plan in comparison.engines.items()])


@lru_cache(maxsize=KEPT)
def _card(column: str, plan: EnginePlan) -> str:
    body = _verdict(plan) if plan.status != "ok" else _counts(column, plan)
    return f'<li class="em-card em-{column}"><h3>{title(column)}</h3>{body}</li>'


def _counts(column: str, plan: EnginePlan) -> str:
    steady = steady_range(plan)
    size = " em-long" if len(steady) > _LONG else ""
    small = [figure(f"{column}.kv_tokens", figures.count(plan.kv_tokens, "KV tokens"))] if plan.kv_tokens else []
    if plan.binds is not None:
        small.append(figure(f"{column}.binds", _SENTENCES[plan.binds]))
    return (
        f'<dl class="em-counts{size}">'
        f"<div><dt>published rule</dt><dd>{figure(f'{column}.running', figures.count(plan.running))}</dd></div>"
        f"<div><dt>{_steady_label(column, plan)}</dt><dd>{figure(f'{column}.steady', steady)}</dd></div></dl>"
        f'<p class="em-small">{"<br>".join(small)}</p>'
    )


def _verdict(plan: EnginePlan) -> str:
    reason = "" if plan.reason is None else f'<p class="em-small">{escape(plan.reason)}</p>'
    return f'<p class="em-verdict">{figures.STATUS[plan.status]}</p>{reason}'


def strip(comparison: Comparison) -> str:
    """The running counts alone, for the narrow screen's sticky line."""
    return "".join(
        [
            f'<li class="em-{column}">{name(column)} {figure(f"strip.{column}", strip_text(plan))}</li>'
            for column, plan in comparison.engines.items()
        ]
    )


def strip_text(plan: EnginePlan) -> str:
    """The running count, or the status in words."""
    return figures.count(plan.running) if plan.status == "ok" else figures.STATUS[plan.status]


def finding(comparison: Comparison) -> str:
    """What the plans say together."""
    return f"<p>{escape(comparison.finding.text)}</p>"


def announcement(comparison: Comparison) -> str:
    """The counts as one sentence, for screen readers after an edit."""
    counts = [f"{load_release(column).name} {strip_text(plan)}" for column, plan in comparison.engines.items()]
    return "Requests running: " + ", ".join(counts)
