"""The runner cannot pass by silence: unknown sets, empty files, missing fields and wrong figures all fail."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
VECTORS = TESTS / "vectors"


def run(*paths: Path) -> tuple[int, str, str]:
    command = [sys.executable, str(TESTS / "conformance.py"), *map(str, paths)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stdout.strip().rpartition("\n")[2]


def altered(tmp_path: Path, name: str, **changes: Any) -> Path:
    document = json.loads((VECTORS / f"{name}.json").read_text())
    document.update(changes)
    path = tmp_path / "altered.json"
    path.write_text(json.dumps(document))
    return path


def first_case(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())["cases"][0]
    return case


def test_a_correct_file_passes() -> None:
    assert run(VECTORS / "tensorrt_llm" / "graphs.json")[::2] == (0, "13 passed, 0 failed")


def test_nothing_given_is_a_failure() -> None:
    assert run()[::2] == (1, "0 passed, 1 failed")


@pytest.mark.parametrize("changes", [{"set": "vllm/unheard_of"}, {"cases": []}, {"set": None}])
def test_an_unknown_set_or_no_cases_is_a_failure(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert run(altered(tmp_path, "vllm/defaults", **changes))[::2] == (1, "0 passed, 1 failed")


def test_a_field_that_the_product_cannot_produce_is_a_failure(tmp_path: Path) -> None:
    case = first_case("vllm/defaults")
    code, output, last = run(altered(tmp_path, "vllm/defaults", cases=[{**case, "novel_figure": 3}]))
    assert (code, last) == (1, "0 passed, 1 failed")
    assert "novel_figure: expected 3, got '(not produced)'" in output


@pytest.mark.parametrize("name", ["sglang/pool", "sglang/burst", "sglang/memory_defaults"])
def test_a_wrong_figure_is_printed_as_expected_and_got(tmp_path: Path, name: str) -> None:
    case = first_case(name)
    figure = next(key for key, value in case["expect"].items() if type(value) is int)
    right = case["expect"][figure]
    case["expect"][figure] = right + 1
    code, output, _ = run(altered(tmp_path, name, cases=[case]))
    assert code == 1
    assert f"{figure}: expected {right + 1}, got {right}" in output


def test_a_refusal_that_is_expected_and_not_given_is_a_failure(tmp_path: Path) -> None:
    accepted = {"input": first_case("tensorrt_llm/admission")["input"], "error": True, "why": "altered"}
    assert run(altered(tmp_path, "tensorrt_llm/admission", cases=[], errors=[accepted]))[0] == 1


def test_a_transient_is_reported_and_not_counted() -> None:
    code, output, last = run(VECTORS / "vllm" / "scheduler_steady_state.json")
    assert (code, last) == (0, "11 passed, 0 failed")
    assert "ss-10: still a transient" in output


def test_a_law_outside_its_tolerance_fails(tmp_path: Path) -> None:
    case = {**first_case("vllm/scheduler_steady_state"), "mean_running": 250.0}
    assert run(altered(tmp_path, "vllm/scheduler_steady_state", cases=[case]))[0] == 1
