"""Kept columns: what they give is what a fresh comparison gives, and only what an edit touches is planned again."""

from __future__ import annotations

import random

import pytest

import random_scenarios
from enginemem import Scenario, columns, compare
from enginemem.columns import kept_column
from enginemem.comparison import ENGINES, Column
from enginemem.comparison import planned as planned_column
from enginemem.inputs import Input
from enginemem.scenario import PLAN_INPUTS

ONE_KNOB = {
    "vllm": "vllm.max_num_seqs",
    "sglang": "sglang.max_running_requests",
    "tensorrt-llm": "tensorrt-llm.max_batch_size",
}

OTHER_VALUES = {
    "gpu": "h200-sxm", "cuda_total": "70GiB", "smi_total": "90000MiB", "tp": "2", "model": "llama-3.1-70b",
    "weight_dtype": "fp8", "kv_dtype": "fp8", "max_model_len": "8192", "prompt": "77", "max_tokens": "900",
    "mean_output": "99", "shape": "fixed", "runtime": "4GB", "preload": "1GiB",
}  # fmt: skip


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that were planned since the test began, by engine."""
    columns._kept.cache_clear()
    seen: list[str] = []

    def watched(column: str, scenario: Scenario) -> Column:
        seen.append(column)
        return planned_column(column, scenario)

    monkeypatch.setattr(columns, "planned", watched)
    return seen


@pytest.mark.parametrize(("engine", "knob"), ONE_KNOB.items())
def test_a_knob_plans_its_own_engine_again_and_no_other(engine: str, knob: str, planned: list[str]) -> None:
    compare(Scenario(), column_of=kept_column)
    planned.clear()
    compare(Scenario(**{knob: 64}), column_of=kept_column)
    assert planned == [engine]


@pytest.mark.parametrize(
    "field", [field for field in PLAN_INPUTS if field.section not in ENGINES], ids=lambda field: field.key
)
def test_what_all_share_plans_all_again(field: Input, planned: list[str]) -> None:
    compare(Scenario(), column_of=kept_column)
    planned.clear()
    compare(Scenario(**{field.key: OTHER_VALUES[field.key]}), column_of=kept_column)
    assert planned == list(ENGINES)


def test_kept_columns_give_what_fresh_ones_give() -> None:
    """Edits one after the other, each field changed alone or put back, over random scenarios."""
    rng = random.Random(20261130)
    for _ in range(40):
        inputs = random_scenarios.random_scenario(rng)
        for key in [None, *inputs]:
            some = {name: value for name, value in inputs.items() if name != key}
            try:
                scenario = Scenario(**some)
            except ValueError:
                continue
            assert compare(scenario, column_of=kept_column).document() == compare(scenario).document()
