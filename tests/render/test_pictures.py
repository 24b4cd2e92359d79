"""Bars and charts: one scale, exact positions, labels that do not collide."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginemem.comparison import compare
from enginemem.memory_map import memory_maps
from enginemem.render.bars import bars, percent
from enginemem.render.charts import charts
from enginemem.render.svg import doubling, nice_step, octave, spread
from enginemem.scenario import Scenario
from enginemem.sweeps import doublings, over_max_tokens, over_mean_output, over_runtime


def test_shares_add_up_to_the_gpu() -> None:
    for shares in memory_maps(compare(Scenario())).values():
        assert sum([part.bytes for part in shares.parts]) == shares.total
        assert shares.over == 0


def test_weights_that_do_not_fit_stand_beyond_the_total() -> None:
    comparison = compare(Scenario(model="llama-3.1-405b"))
    maps = memory_maps(comparison)
    assert all(shares.over > 0 for shares in maps.values())
    assert "more than the GPU has" in bars(comparison)


def test_bars_say_why_there_are_none() -> None:
    assert "No bar" in bars(compare(Scenario(gpu="gb300")))


@pytest.mark.parametrize(("value", "scale", "text"), [(1, 3, "33.333%"), (0, 7, "0.000%"), (7, 7, "100.000%")])
def test_percent_is_rounded_half_up(value: int, scale: int, text: str) -> None:
    assert percent(value, scale) == text


def test_every_doubling_is_as_wide_as_the_last() -> None:
    at = doubling(256, 4096)
    assert [at(256 << step) for step in range(5)] == [0, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), 1]
    assert octave(3) == Fraction(3, 2)


@given(st.lists(st.integers(0, 200).map(Fraction), max_size=4))
def test_spread_labels_keep_their_distance_and_order(wanted: list[Fraction]) -> None:
    placed = spread(wanted, 15, 0, 200)
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    for lower, upper in pairwise(order):
        assert placed[upper] - placed[lower] >= 15
    assert all(0 <= place <= 200 for place in placed)


@pytest.mark.parametrize(("largest", "step"), [(1, 1), (4, 1), (5, 2), (209, 100), (400, 100), (401, 200)])
def test_axis_steps_are_round(largest: int, step: int) -> None:
    assert nice_step(largest) == step


def test_grids_hold_both_ends_and_the_powers_between() -> None:
    assert doublings(250, 2000) == [250, 256, 512, 1024, 2000]
    assert doublings(1, 1) == [1]


def test_sweeps_pass_through_the_scenario_itself() -> None:
    comparison = compare(Scenario(max_tokens=3000, mean_output=700))
    running = {column: plan.running for column, plan in comparison.engines.items()}
    for sweep in (over_max_tokens(comparison), over_mean_output(comparison), over_runtime(comparison)):
        here = [point for point in sweep.points if point.at == sweep.current]
        assert len(here) == 1
        if sweep.key != "runtime":
            assert here[0].running == running
        ends = [point.at for point in sweep.points]
        assert ends == sorted(set(ends))


def test_swept_counts_are_those_of_the_same_scenario_planned_afresh() -> None:
    comparison = compare(Scenario())
    for point in over_max_tokens(comparison).points:
        fresh = compare(Scenario(max_tokens=point.at))
        assert point.running == {column: plan.running for column, plan in fresh.engines.items()}


def test_the_runtime_sweep_reaches_an_assumption_outside_its_range() -> None:
    sweep = over_runtime(compare(Scenario(runtime="9GB")))
    assert sweep.points[-1].at == 9 * 10**9


def test_every_chart_has_its_table_and_marks_the_current_point() -> None:
    html = charts(compare(Scenario()))
    assert html.count('class="em-chart"') == html.count("<figure") == 3
    assert html.count('aria-current="true"') == 3
    assert html.count("em-dot") == 9


def test_charts_say_why_there_are_none() -> None:
    assert "Nothing to draw" in charts(compare(Scenario(model="llama-3.1-405b")))
