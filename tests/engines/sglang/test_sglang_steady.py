"""The steady-state law against the real scheduler."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from enginemem.engines.plan import SteadyState
from enginemem.engines.sglang.steady import Demand, running_mean, steady_state
from enginemem.release import load_release
from enginemem.traffic import OutputMoments, output_moments

RELEASE = load_release("sglang")
VECTORS = Path(__file__).parents[2] / "vectors" / "sglang"
CASES = json.loads((VECTORS / "scheduler_steady_state.json").read_text())["cases"]


def law(case: dict[str, Any]) -> SteadyState:
    reference, output = case["reference"], case["output_length"]
    mean = reference["mean_output_tokens"]
    demand = Demand(
        pool=case["pool_tokens"],
        page=case["page_size"],
        prompt=case["prompt_tokens"],
        max_new=case["max_new_tokens"],
        moments=OutputMoments(mean, reference["mean_generated_of_running"] * (mean - 1)),
        shape="fixed" if output["kind"] == "fixed" else "uniform",
        floor=Fraction(str(reference["ratio_floor"])),
        chunk=case["chunked_prefill_size"],
        pass_tokens=case["max_prefill_tokens"],
        cap=case["max_running_requests"],
    )
    lockstep = output.get("first_k_uniform") is None
    return steady_state(RELEASE, demand, lockstep=lockstep, ignore_eos=case["ignore_eos"])


def named(keep: bool) -> list[Any]:
    retracted = [case for case in CASES if (case["expect"]["retracted_total"] > 0) is keep]
    return [pytest.param(case, id=case["id"]) for case in retracted]


@pytest.mark.parametrize("case", named(False))
def test_without_retraction_the_law_meets_the_measured_mean(case: dict[str, Any]) -> None:
    measured = case["expect"]["running_mean"]
    allowed = 0.01 if case["page_size"] == 1 and measured >= 50 else 0.025
    assert law(case).mean == pytest.approx(measured, rel=allowed)


@pytest.mark.parametrize("case", named(True))
def test_with_retraction_the_measured_mean_lies_in_a_narrow_interval(case: dict[str, Any]) -> None:
    state = law(case)
    assert state.low <= case["expect"]["running_mean"] <= state.high
    assert state.high - state.low <= 0.25 * state.mean
    assert state.regime == "retraction"


def demand(**changes: Any) -> Demand:
    moments = output_moments(shape="geometric", mean=300, limit=2000)
    given: dict[str, Any] = {
        "pool": 412441,
        "page": 1,
        "prompt": 2000,
        "max_new": 2000,
        "moments": moments,
        "shape": "geometric",
        "floor": Fraction(98, 1000),
        "chunk": 8192,
        "pass_tokens": 16384,
        "cap": 2048,
    }
    return Demand(**{**given, **changes})


def test_a_binding_request_cap_loses_the_rows_that_a_finish_opens() -> None:
    state = steady_state(RELEASE, demand(cap=64))
    # each of 64 requests leaves its row open for one of its 299.6 steps
    assert state.mean == pytest.approx(64 - 64 / 299.6, rel=1e-3)
    assert (state.regime, state.high) == ("request_cap", 64)


def test_long_outputs_widen_the_interval_to_a_quarter() -> None:
    moments = output_moments(shape="geometric", mean=1500, limit=8192)
    state = steady_state(RELEASE, demand(moments=moments, max_new=8192))
    assert 0.2 < (state.high - state.low) / state.mean <= 0.25


def test_equal_outputs_of_unknown_phase_cover_both() -> None:
    fixed = demand(moments=OutputMoments(300.0, 300 * 299 / 2), shape="fixed")
    unknown = steady_state(RELEASE, fixed)
    for lockstep in (True, False):
        known = steady_state(RELEASE, fixed, lockstep=lockstep)
        assert unknown.low <= known.low
        assert known.high <= unknown.high


@pytest.mark.parametrize(
    ("prompt", "max_new", "length", "simulated"),
    [(200, 4096, 2000, 279.5), (2000, 2000, 2000, 126.6), (500, 500, 500, 451.5)],
)
def test_long_equal_outputs_that_start_together_do_not_stay_together(
    prompt: int, max_new: int, length: int, simulated: float
) -> None:
    # `simulated`: a step-by-step run of the admission and retraction rules, all requests started at once
    moments = OutputMoments(float(length), length * (length - 1) / 2)
    fixed = demand(prompt=prompt, max_new=max_new, moments=moments, shape="fixed")
    for lockstep in (True, None):
        state = steady_state(RELEASE, fixed, lockstep=lockstep)
        assert state.low <= simulated <= state.high
    assert steady_state(RELEASE, fixed, lockstep=True).high <= 1.25 * simulated


def test_a_pool_for_one_request_runs_one() -> None:
    # 2,000 + 2,000 + 1 < 4,100, and no second one beside it
    assert running_mean(4100, 1, 2000, 2000, 300.0, 44850.0, 0.098, 8192, 4096, 0.45, 60, 1.8) <= 1.0


def test_an_interval_never_reaches_above_what_memory_holds() -> None:
    # Outputs of one token end with their prefill: nobody is in a decode step, and 2,048 never were.
    moments = output_moments(shape="fixed", mean=1, limit=1)
    demand = Demand(412_441, 1, 2000, 1, moments, "fixed", Fraction("0.098"), 8192, 16_384, 2048)
    state = steady_state(RELEASE, demand)
    assert (state.mean, state.regime) == (0.0, "request_cap")
    assert state.high < 412_441 / 2000 * 1.1
