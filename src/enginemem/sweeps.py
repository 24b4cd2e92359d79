"""Running requests over one input at a time: what the pictures draw and the tables behind them list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from enginemem.comparison import ENGINES, Comparison, runtime_range
from enginemem.release import load_release
from enginemem.scenario import Scenario

_ROUND = 10**8
"""Bytes to which the inner points of the runtime sweep are cut: figures that people read off."""


class Point(NamedTuple):
    """Published running counts at one value of the input, by column; None where an engine's plan is not ok."""

    at: int
    running: Mapping[str, int | None]


class Sweep(NamedTuple):
    """One input varied, all others as given. `current` is the scenario's own value and one of the points."""

    key: str
    unit: str
    current: int
    points: tuple[Point, ...]


def _running(scenario: Scenario) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for column, engine in ENGINES.items():
        plan = engine.plan(scenario, load_release(column))
        found[column] = plan.running if plan.status == "ok" else None
    return found


def doublings(low: int, high: int) -> list[int]:
    """The powers of two from `low` to `high`, and both ends."""
    powers = [1 << power for power in range(low.bit_length(), high.bit_length())]
    return sorted({low, *powers, high})


def _sweep(comparison: Comparison, key: str, current: int, grid: Iterable[int]) -> Sweep:
    scenario = comparison.scenario
    own = {column: plan.running if plan.status == "ok" else None for column, plan in comparison.engines.items()}
    points = [
        Point(value, own if value == current else _running(scenario.varied(key, value)))
        for value in sorted({*grid, current})
    ]
    return Sweep(key, "tokens", current, tuple(points))


def over_max_tokens(comparison: Comparison) -> Sweep:
    """Running against max_tokens: from the mean output (at least an eighth of the current value) up to eight times it."""
    scenario = comparison.scenario
    now = scenario.max_tokens
    low = max(scenario.mean_output, now // 8, 1)
    high = max(now, min(8 * now, scenario.model.max_position))
    return _sweep(comparison, "max_tokens", now, doublings(low, high))


def over_mean_output(comparison: Comparison) -> Sweep:
    """Running against the mean output: from an eighth of the current value up to max_tokens, at most eight times it."""
    scenario = comparison.scenario
    now = scenario.mean_output
    return _sweep(
        comparison, "mean_output", now, doublings(max(now // 8, 1), max(now, min(8 * now, scenario.max_tokens)))
    )


def over_runtime(comparison: Comparison, *, points: int = 9) -> Sweep:
    """Running against the memory assumed beside the weights, bytes per GPU, over its evidenced range.

    The scenario's own assumption is a point too, also where it lies outside the range. An engine whose pool does not
    depend on the assumption keeps its count.
    """
    scenario = comparison.scenario
    low, high = runtime_range()
    now = int(scenario.runtime)
    inner = [low + (high - low) * index // (points - 1) // _ROUND * _ROUND for index in range(1, points - 1)]
    grid = {low, *inner, high, now}
    found = []
    for value in sorted(grid):
        running: dict[str, int | None] = {}
        for column, engine in ENGINES.items():
            plan = comparison.engines[column]
            running[column] = engine.at_assumption(scenario, load_release(column), plan, value).running
        found.append(Point(value, running))
    return Sweep("runtime", "bytes", now, tuple(found))
