"""The comparison: the engines' plans side by side, the floors at their batch, the sensitivity, and the finding.

The module is not named after its function: `enginemem.compare` is the function, and a submodule would shadow it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from enginemem import dataset
from enginemem.derivation import Step
from enginemem.engines import sglang, tensorrt_llm, vllm
from enginemem.engines.plan import PLAN_FIELDS, EnginePlan, Sensitivity
from enginemem.finding import Finding, find
from enginemem.floors import add_floors
from enginemem.release import PINNED, EngineRelease, load_release
from enginemem.scenario import PLAN_INPUTS, Scenario
from enginemem.units import parse_quantity
from enginemem.version import __version__

SCHEMA = 1


class Engine(NamedTuple):
    """What the comparison needs of an engine's package."""

    plan: Callable[[Scenario, EngineRelease], EnginePlan]
    at_assumption: Callable[[Scenario, EngineRelease, EnginePlan, int], Sensitivity]
    rules: Mapping[str, Callable[..., Any]]


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine(vllm.plan, vllm.at_assumption, vllm.RULES),
    "sglang": Engine(sglang.plan, sglang.at_assumption, sglang.RULES),
    "tensorrt-llm": Engine(tensorrt_llm.plan, tensorrt_llm.at_assumption, tensorrt_llm.RULES),
}


class Range(NamedTuple):
    """How pool and running count move over the evidenced range of the runtime assumption.

    `tokens_per_gb` is KV tokens lost per GB (10^9 B) of assumption, None when the plan is not ok at both ends.
    """

    low: Sensitivity
    high: Sensitivity
    tokens_per_gb: Fraction | None


class Comparison(NamedTuple):
    """The plans of all engines for one scenario, by column id, and what they say together."""

    scenario: Scenario
    engines: Mapping[str, EnginePlan]
    ranges: Mapping[str, Range]
    finding: Finding

    def document(self) -> dict[str, Any]:
        """The JSON root as plain Python values: bytes, tokens and counts are integers, nothing is rounded."""
        return document(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """The comparison as JSON text."""
        import json  # noqa: PLC0415 - importing the package must be quick

        return json.dumps(self.document(), indent=indent, ensure_ascii=False)


class Column(NamedTuple):
    """What one engine adds to a comparison."""

    plan: EnginePlan
    range: Range


def planned(column: str, scenario: Scenario) -> Column:
    """The column of one engine. Of the engines' knobs it reads that engine's only."""
    engine, release = ENGINES[column], load_release(column, PINNED[column])
    plan = engine.plan(scenario, release)
    add_floors(scenario, plan)
    low, high = [engine.at_assumption(scenario, release, plan, value) for value in runtime_range()]
    return Column(plan, Range(low, high, _tokens_per_gb(low, high)))


def compare(scenario: Scenario, *, column_of: Callable[[str, Scenario], Column] = planned) -> Comparison:
    """The comparison of the pinned releases for `scenario`. Pure: same scenario, same result, on every Python.

    `column_of` is for a caller that keeps columns from one comparison to the next.
    """
    columns = {name: column_of(name, scenario) for name in ENGINES}
    plans = {name: column.plan for name, column in columns.items()}
    return Comparison(scenario, plans, {name: column.range for name, column in columns.items()}, find(plans))


@cache
def runtime_range() -> tuple[int, int]:
    """The evidenced range of the runtime assumption, bytes (`data/assumptions.yaml`)."""
    record = dataset.read("assumptions.json")["runtime"]
    return int(parse_quantity(record["low"])), int(parse_quantity(record["high"]))


def _tokens_per_gb(low: Sensitivity, high: Sensitivity) -> Fraction | None:
    if low.kv_tokens is None or high.kv_tokens is None:
        return None
    return Fraction((low.kv_tokens - high.kv_tokens) * 10**9, high.assumption_bytes - low.assumption_bytes)


@cache
def data_digest() -> str:
    """SHA-256 over all generated data: the same digest means the same facts."""
    digest: str = dataset.read("digest.json")["sha256"]
    return digest


def plain(value: Any) -> Any:
    """A value as JSON holds it: a whole rational as an integer, any other as the text `numerator/denominator`."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    return list(value) if isinstance(value, tuple) else value


def _seconds(value: Fraction | None) -> float | None:
    return None if value is None else value.numerator / value.denominator


def step_document(step: Step) -> dict[str, Any]:
    """A step as plain Python values."""
    return {
        "id": step.id,
        "label": step.label,
        "expression": step.expression,
        "operands": {name: {"value": plain(value), "unit": unit} for name, (value, unit) in step.operands.items()},
        "value": plain(step.value),
        "unit": step.unit,
        "role": step.role,
        "note": step.note,
        "sources": [source._asdict() for source in step.sources],
    }


def _range_document(ends: Range) -> dict[str, Any]:
    return {
        "low": ends.low._asdict(),
        "high": ends.high._asdict(),
        "tokens_per_gb": None if ends.tokens_per_gb is None else _seconds(ends.tokens_per_gb),
    }


def plan_document(plan: EnginePlan) -> dict[str, Any]:
    """An engine's plan as plain Python values, with the field names that NAMES promises."""
    fields = {name: getattr(plan, name) for name in PLAN_FIELDS}
    fields["kv_bytes_per_token"] = plain(plan.kv_bytes_per_token)
    fields["running_steady"] = None if plan.running_steady is None else plan.running_steady._asdict()
    for name in ("decode_step_seconds", "output_tokens_per_second", "prefill_seconds"):
        fields[name] = _seconds(fields[name])
    fields["resolved"] = {
        name: {"value": plain(resolved.value), "set_by": resolved.set_by} for name, resolved in plan.resolved.items()
    }
    fields["steps"] = [step_document(step) for step in plan.steps]
    return fields


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON root of a comparison as plain Python values."""
    engines = {}
    for column, plan in comparison.engines.items():
        engines[column] = plan_document(plan)
        engines[column]["runtime_range"] = _range_document(comparison.ranges[column])
    import json  # noqa: PLC0415 - importing the package must be quick

    scenario = comparison.scenario
    own = scenario.has_own_model and scenario.model.configuration
    return {
        "schema": SCHEMA,
        "enginemem_version": __version__,
        "data_digest": data_digest(),
        "scenario": {**{key: scenario_text(scenario, key) for key in scenario.values}, "model": scenario.model.id},
        "configuration": json.loads(scenario.model.configuration) if own else None,
        "link": comparison.scenario.link(),
        "finding": comparison.finding.text,
        "engines": engines,
    }


def scenario_text(scenario: Scenario, key: str) -> Any:
    """One input as JSON holds it: whole numbers as integers, everything else as its canonical text."""
    value = scenario.values[key]
    if isinstance(value, int) and PLAN_INPUTS[key].kind in ("count", "flag"):
        return value
    return PLAN_INPUTS[key].text(value)
