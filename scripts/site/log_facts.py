"""What the page of printed logs prints: each plan, and each figure of a log beside ours under the log's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from enginemem import dataset
from enginemem.comparison import ENGINES, Comparison, compare, runtime_range
from enginemem.dataset import exact
from enginemem.engines.plan import Sensitivity
from enginemem.release import load_release
from enginemem.render import figures
from enginemem.render.comparison_table import comparison_table, signed
from enginemem.render.markup import escape
from enginemem.render.reproduce import command_line
from enginemem.scenario import PLAN_INPUTS, Scenario
from enginemem.units import GIB, Exact, gib, round_half_up

_LABELS = {
    "weights_bytes": "Weights per GPU",
    "kv_pool_bytes": "KV pool per GPU",
    "kv_tokens": "KV tokens per replica",
    "kv_bytes_per_token": "KV bytes of a token per GPU",
}


class LogFacts(NamedTuple):
    """One log as the template prints it; `place` is its address, empty where there is none."""

    record: str
    engine: str
    release: str
    date: str
    source: str
    place: str
    settings: tuple[tuple[str, str], ...]
    measured: str
    measured_parts: str
    above_the_range: bool
    table: str
    outcome: str
    note: str
    command: str


class LogsCaseFacts(NamedTuple):
    """One model on one replica: the plan at its defaults, and the logs. `without`: engines that no log is of."""

    id: str
    title: str
    question: str
    link: str
    finding: str
    table: str
    logs: tuple[LogFacts, ...]
    without: tuple[str, ...]


def _place(source: Mapping[str, Any]) -> str:
    if source["repository"] is None:
        return ""
    kind, number = ("issues", source["issue"]) if source["issue"] is not None else ("pull", source["pull_request"])
    return f"https://github.com/{source['repository']}/{kind}/{number}"


def shown(name: str, value: Exact | None) -> str:
    """A figure as logs print it: bytes in GiB, everything else as a whole number."""
    if value is None:
        return figures.DASH
    if name == "kv_bytes_per_token":
        return f"{value:,} B" if isinstance(value, int) else f"{round_half_up(value, 1)} B"
    return gib(value) if name.endswith("_bytes") else f"{value:,}"


def difference(name: str, ours: Exact | None, printed: Exact) -> str:
    """Ours minus what was printed, in its unit and in per cent of it."""
    if ours is None:
        return figures.DASH
    gap = Fraction(ours) - printed
    if not gap:
        return "equal"
    size = f"{signed(gap / GIB, 2)} GiB" if name.endswith("_bytes") and name != "kv_bytes_per_token" else signed(gap, 0)
    return f"{size} ({signed(100 * gap / abs(Fraction(printed)), 1)} %)"


def _span(name: str, comparison: Comparison, engine: str) -> str:
    """Ours over the range of the runtime assumption."""
    if name not in ("kv_pool_bytes", "kv_tokens"):
        return figures.DASH
    ends: list[Sensitivity] = list(comparison.ranges[engine][:2])
    low, high = [getattr(end, name) for end in ends]
    if low == high:
        return figures.DASH if low is None else "does not move"
    return f"{shown(name, low)} to {'no pool' if high is None else shown(name, high)}"


def _starts(log: Mapping[str, Any], planned: Comparison, measured: Comparison | None) -> list[str]:
    """Whether the engine started, and whether it would by our plan."""
    engine = log["engine"]
    ends = [end.kv_pool_bytes is not None for end in planned.ranges[engine][:2]]
    span = " to ".join(dict.fromkeys([figures.yes_no(end) for end in ends]))
    ours = [comparison.engines[engine].status == "ok" for comparison in (planned, measured) if comparison is not None]
    agree = "equal" if ours[-1] == log["started"] else "differs"
    return [figures.yes_no(log["started"]), figures.yes_no(ours[0]), span, *map(figures.yes_no, ours[1:]), agree]


def _row(label: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{label}</th>{"".join([f"<td>{cell}</td>" for cell in cells])}</tr>'


def _table(log: Mapping[str, Any], planned: Comparison, measured: Comparison | None) -> str:
    engine = log["engine"]
    heads = [
        "printed",
        "ours",
        "ours over the range",
        *(["ours with what it measured"] if measured else []),
        "difference",
    ]
    rows = [_row("Starts", _starts(log, planned, measured))]
    for name in [name for name in _LABELS if name in log["printed"]]:
        printed = log["printed"][name]
        value = exact(printed["value"])
        if value is None:
            raise ValueError(f"{log['record']}: {name} has no value")
        plans = [comparison.engines[engine] for comparison in (planned, measured) if comparison is not None]
        ours = [getattr(plan, name) for plan in plans]
        cells = [escape(printed["text"]) + (" B" if name == "kv_bytes_per_token" else ""), shown(name, ours[0])]
        cells += [
            _span(name, planned, engine),
            *[shown(name, own) for own in ours[1:]],
            difference(name, ours[-1], value),
        ]
        rows.append(_row(_LABELS[name], cells))
    head = "".join([f'<th scope="col">{text}</th>' for text in heads])
    return (
        f'<table class="em-table em-logs"><caption class="em-hidden">{escape(log["source"]["title"])}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _log_facts(log: Mapping[str, Any], base: Mapping[str, Any]) -> LogFacts:
    scenario = Scenario(**{**base, **log["inputs"]})
    measured = exact(log["measured"])
    with_measured = None
    if measured is not None:
        scenario = Scenario(**{**base, **log["inputs"], "runtime": measured})
        with_measured = compare(scenario)
    return LogFacts(
        record=log["record"],
        engine=log["engine"],
        release=log["release"] or "",
        date=log["date"] or "",
        source=log["source"]["title"],
        place=_place(log["source"]),
        settings=tuple([(key, PLAN_INPUTS[key].text(scenario.values[key])) for key in log["inputs"]]),
        measured="" if measured is None else gib(measured),
        measured_parts=", ".join([f"{text} {name}" for name, text in log["beside_weights"].items()]),
        above_the_range=measured is not None and measured > runtime_range()[1],
        table=_table(log, compare(Scenario(**{**base, **log["inputs"]})), with_measured),
        outcome=log["outcome"],
        note=log["note"],
        command=command_line(scenario),
    )


def all_log_cases() -> list[LogsCaseFacts]:
    """Every case of the data file, planned afresh."""
    facts = dataset.read("logs.json")
    found = []
    for case_id, case in facts["cases"].items():
        scenario = Scenario(**case["inputs"])
        comparison = compare(scenario)
        logs = tuple([_log_facts(log, case["inputs"]) for log in case["logs"]])
        there = {log.engine for log in logs}
        found.append(
            LogsCaseFacts(
                id=case_id,
                title=case["title"],
                question=case["question"],
                link=scenario.link(),
                finding=comparison.finding.text,
                table=comparison_table(comparison),
                logs=logs,
                without=tuple([load_release(column).name for column in ENGINES if column not in there]),
            )
        )
    return found
