"""The published figures, to the digit, and the data file against the vectors."""

import json
from pathlib import Path

import pytest

from enginemem import dataset
from enginemem.worked import WorkedCase, check_case, worked_cases

VECTORS = Path(__file__).parents[1] / "vectors" / "worked" / "worked.json"


@pytest.mark.parametrize("case", worked_cases(), ids=lambda case: case.id)
def test_every_published_figure_is_met(case: WorkedCase) -> None:
    checks = check_case(case)
    assert len(checks) > 40
    assert [check for check in checks if not check.equal] == []


def test_the_data_file_holds_what_the_vectors_hold() -> None:
    vectors = {case["name"].replace("_", "-"): case for case in json.loads(VECTORS.read_text())["cases"]}
    for name, case in dataset.read("worked.json")["cases"].items():
        expected = {engine.replace("_", "-"): figures for engine, figures in vectors[name]["engines"].items()}
        assert case["engines"] == expected
        assert case["prefill_ms"] == vectors[name]["prefill_ms_printed"]
        assert case["printed"] == vectors[name]["printed_on_the_page"]


def test_a_wrong_figure_would_be_seen() -> None:
    check = check_case(worked_cases()[0])[-1]
    assert not check._replace(published="9,999").equal
