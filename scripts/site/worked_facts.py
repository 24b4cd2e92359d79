"""What the page of worked comparisons prints: each case computed afresh, beside the first one and as a command."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from enginemem.comparison import Comparison, compare
from enginemem.finding import percent
from enginemem.render import figures
from enginemem.render.answer import steady_range
from enginemem.render.comparison_table import comparison_table, signed
from enginemem.render.markup import title
from enginemem.render.reproduce import command_line, python_line
from enginemem.scenario import PLAN_INPUTS
from enginemem.worked import WorkedCase, check_case, worked_cases

_ROWS = (
    "Running (published rule)",
    "Running (steady state)",
    "What binds",
    "KV pool per GPU",
    "KV tokens per replica",
    "Largest decode graph",
    "Running batch in a graph",
    "Decode step, floor",
    "Aggregate output, ceiling",
)


class CaseFacts(NamedTuple):
    """One case as the template prints it. `step(engine, id)` is a step's value, formatted."""

    id: str
    title: str
    question: str
    link: str
    changed: tuple[tuple[str, str], ...]
    table: str
    against: str
    simplified: str
    python: str
    command: str
    equal: int
    checked: int
    step: Callable[[str, str], str]
    plan: Callable[[str], Any]
    pools_differ: str


def case_facts(case: WorkedCase, first: Comparison) -> CaseFacts:
    """Everything about one case; `first` is the comparison that it is held against."""
    comparison = compare(case.scenario)
    checks = check_case(case)
    given = case.scenario.non_defaults()
    spread = comparison.finding.pool_spread

    def step(engine: str, step_id: str) -> str:
        found = {step.id: step for step in comparison.engines[engine].steps}[f"{engine}.{step_id}"]
        text = figures.figure(found.value, found.unit)
        return text.partition(" B (")[2].rstrip(")") or text

    return CaseFacts(
        id=case.id,
        title=case.title,
        question=case.question,
        link=case.scenario.link(),
        changed=tuple([(PLAN_INPUTS[key].label, text) for key, text in given.items()]),
        table=comparison_table(comparison, only=_ROWS),
        against="" if comparison.scenario == first.scenario else _against(comparison, first),
        simplified=_simplified(comparison),
        python=python_line(case.scenario),
        command=command_line(case.scenario),
        equal=sum([check.equal for check in checks]),
        checked=len(checks),
        step=step,
        plan=lambda engine: comparison.engines[engine],
        pools_differ="" if spread is None else percent(spread),
    )


def all_cases() -> list[CaseFacts]:
    """The three cases, each held against the first."""
    cases = worked_cases()
    first = compare(cases[0].scenario)
    return [case_facts(case, first) for case in cases]


def _table(caption: str, head: list[str], rows: list[list[str]]) -> str:
    cells = "".join([f'<th scope="col">{text}</th>' for text in head])
    body = "".join(
        [f'<tr><th scope="row">{row[0]}</th>' + "".join([f"<td>{c}</td>" for c in row[1:]]) + "</tr>" for row in rows]
    )
    return (
        f'<table class="em-table"><caption class="em-hidden">{caption}</caption><thead><tr><td></td>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _against(comparison: Comparison, first: Comparison) -> str:
    rows = []
    for column, plan in comparison.engines.items():
        before, now = first.engines[column].running, plan.running
        change = figures.DASH
        if before and now:
            change = signed(Fraction(100 * (now - before), before), 1) + " %"
        rows.append([title(column), figures.count(before), figures.count(now), change])
    return _table("Running requests against the first comparison", ["first comparison", "here", "change"], rows)


def _simplified(comparison: Comparison) -> str:
    rows = [
        [
            title(column),
            figures.count(plan.running),
            figures.count(plan.running_burst),
            figures.count(plan.running_decayed),
            steady_range(plan),
            figures.count(plan.kv_tokens),
            figures.count(plan.kv_tokens_logged),
        ]
        for column, plan in comparison.engines.items()
    ]
    head = ["published rule", "burst from idle", "forecast decayed", "steady state", "KV tokens", "tokens in the log"]
    return _table("What the published rule leaves out", head, rows)
