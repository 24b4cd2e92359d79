"""The printed logs: figures as printed with the value behind them, each with its place; and the page's arithmetic."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest
from pydantic import ValidationError

from enginemem import Scenario, compare, dataset
from enginemem.schema.logs import PrintedLog, printed_value
from enginemem.units import GIB

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.site.log_facts import all_log_cases, difference, shown  # noqa: E402

LOGS = {log["record"]: log for case in dataset.read("logs.json")["cases"].values() for log in case["logs"]}
GOOD = {
    "record": "a-1", "engine": "vllm", "release": None, "date": None, "source": {"title": "x"}, "inputs": {},
    "printed": {"kv_pool_bytes": "1 GiB"}, "started": True, "outcome": "It started.", "note": "x",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.71 GiB", Fraction(171, 100) * GIB), ("-2.14 GiB", Fraction(-214, 100) * GIB), ("509,000", 509_000), ("7", 7)],
)
def test_a_printed_figure_has_an_exact_value(text: str, value: Fraction | int) -> None:
    assert printed_value(text) == value


@pytest.mark.parametrize("text", ["1.71", "~509k", "GiB", "1,7 GiB", "5090,000", ""])
def test_what_is_no_figure_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a|a quantity"):
        printed_value(text)


@pytest.mark.parametrize(
    "change",
    [
        {"printed": {"kv_tokens": "1.71 GiB"}},
        {"printed": {"kv_pool": "1 GiB"}},
        {"source": {"title": "x", "issue": 3}},
        {"source": {"title": "x", "repository": "a/b"}},
        {"beside_weights": {"peak": "7.38"}},
    ],
)
def test_a_log_that_is_not_whole_is_refused(change: dict[str, object]) -> None:
    assert PrintedLog.model_validate(GOOD)
    with pytest.raises(ValidationError):
        PrintedLog.model_validate(GOOD | change)


def test_what_was_measured_beside_the_weights_is_added_up() -> None:
    measured = LOGS["vllm-0110-h100-gptoss120b"]["measured"]
    assert Fraction(measured) == (Fraction(738, 100) + Fraction(13, 100)) * GIB
    assert LOGS["vllm-27508-h100-gptoss120b"]["measured"] is None


def test_a_difference_is_ours_less_what_was_printed() -> None:
    assert difference("kv_pool_bytes", 3 * GIB, 2 * GIB) == "+1.00 GiB (+50.0 %)"
    assert difference("kv_pool_bytes", GIB, -2 * GIB) == "+3.00 GiB (+150.0 %)"
    assert difference("kv_tokens", 90, 100) == "−10 (−10.0 %)"
    assert difference("kv_bytes_per_token", 35_136, 35_136) == "equal"
    assert difference("kv_tokens", None, 100) == "-"
    assert shown("kv_bytes_per_token", 35_136) == "35,136 B"


def test_the_page_holds_every_log_and_says_which_engines_have_none() -> None:
    cases = {case.id: case for case in all_log_cases()}
    assert {log.record for case in cases.values() for log in case.logs} == LOGS.keys()
    assert cases["gpt-oss-120b-one-h100"].without == ("SGLang", "TensorRT-LLM")
    assert cases["deepseek-v3-eight-h200"].without == ("vLLM",)


def test_the_budget_rule_closes_with_what_the_log_measured() -> None:
    """0.95 of the part's memory, less 7.51 GiB: weights and pool together are what the log prints, to its last digit."""
    record = LOGS["vllm-0110-h100-gptoss120b"]
    measured = Fraction(record["measured"])
    plan = compare(Scenario(gpu="h100-sxm", model="gpt-oss-120b", runtime=measured, **record["inputs"])).engines["vllm"]
    assert plan.weights_bytes is not None
    assert plan.kv_pool_bytes is not None
    printed = sum([Fraction(figure["value"]) for figure in record["printed"].values()], Fraction(0))
    assert abs(plan.weights_bytes + plan.kv_pool_bytes - printed) < Fraction(GIB, 100)
    log = next(log for case in all_log_cases() for log in case.logs if log.record == record["record"])
    assert (log.measured, log.above_the_range) == ("7.51 GiB", True)
    assert difference("kv_pool_bytes", plan.kv_pool_bytes, Fraction(333, 100) * GIB) in log.table
