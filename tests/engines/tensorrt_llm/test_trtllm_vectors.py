"""The frozen vectors: pool, admission, graphs, temporary pool, steps and measured maxima."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from enginemem.architecture import LayerKind, LayerSpec
from enginemem.engines.tensorrt_llm import admission, dispatch, layout, maxima, pool, steps, temporary
from enginemem.release import load_release

VECTORS = Path(__file__).parents[2] / "vectors" / "tensorrt_llm"
RELEASE = load_release("tensorrt-llm")
BLOCK = 32


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    assert document["set"] == f"tensorrt_llm/{name}"
    return document


def cases(name: str, part: str = "cases") -> list[Any]:
    found: list[Any] = read(name)[part]
    return found


def layers(shape: dict[str, int]) -> tuple[LayerSpec, ...]:
    width = shape.get("mla_dim") or shape["head_dim"]
    kind: LayerKind = "mla" if "mla_dim" in shape else "full"
    return (LayerSpec(kind, shape["layers"], shape.get("kv_heads", 1), width, 0 if kind == "mla" else width),)


@pytest.mark.parametrize("case", cases("pool"))
def test_pool_matches_the_vector(case: dict[str, Any]) -> None:
    given = {key: value for key, value in case["input"].items() if key not in ("model", "shape", "kv_dtype")}
    found = pool.kv_pool(
        layers(case["input"]["shape"]),
        kv_format=layout.kv_format(RELEASE, case["input"]["kv_dtype"]),
        tokens_per_block=BLOCK,
        **given,
    )
    assert found._asdict() == case["output"]


@pytest.mark.parametrize("case", cases("admission"))
def test_admission_matches_the_vector(case: dict[str, Any]) -> None:
    found = admission.admit(tokens_per_block=BLOCK, **case["input"])
    assert isinstance(found, admission.Admission)
    assert found._asdict() == case["output"]


@pytest.mark.parametrize("case", cases("admission", "errors"))
def test_requests_of_the_error_list_are_refused(case: dict[str, Any]) -> None:
    assert isinstance(admission.admit(tokens_per_block=BLOCK, **case["input"]), admission.Refused)


@pytest.mark.parametrize("case", cases("graphs"))
def test_capture_list_and_replayed_size_match_the_vector(case: dict[str, Any]) -> None:
    given = dict(case["input"])
    padding = given.pop("enable_padding")
    largest = given.pop("cuda_graph_max_batch_size")
    base = dispatch.base_sizes(RELEASE, padding=padding)
    sizes = dispatch.decode_capture_sizes(base, largest=largest, padding=padding, **given)
    assert list(sizes) == case["output"]["sizes"]
    for batch, context, expected in case["output"]["batches"]["rows"]:
        found = dispatch.graph_size(batch, sizes=sizes, padding=padding, has_context_request=context)
        assert found == expected, (batch, context)


@pytest.mark.parametrize("case", cases("temporary_pool"))
def test_temporary_pool_matches_the_vector(case: dict[str, Any]) -> None:
    assert temporary.temporary_pool_blocks(tokens_per_block=BLOCK, **case["input"]) == case["output"]["blocks"]


@pytest.mark.parametrize("case", cases("steps"))
def test_scheduler_steps_match_the_vector(case: dict[str, Any]) -> None:
    given = dict(case["input"])
    requests = [steps.Request(*row) for row in given.pop("requests")["rows"]]
    rows = steps.scheduler_steps(requests, tokens_per_block=BLOCK, **given)
    assert [list(row) for row in rows] == case["output"]["rows"]


SHAPES = {
    "Qwen3-32B-FP8": {"layers": 64, "kv_heads": 8, "head_dim": 128},
    "Llama-3.1-8B": {"layers": 32, "kv_heads": 8, "head_dim": 128},
}
GROUPS = [(key, list(rows)) for key, rows in groupby(sorted(cases("measured_maxima", "rows")), lambda row: row[:4])]


def test_the_measured_rows_fall_into_sixteen_groups() -> None:
    assert len(GROUPS) == 16


@pytest.mark.parametrize(("key", "rows"), GROUPS)
def test_one_free_memory_explains_a_group_of_measured_maxima(key: list[Any], rows: list[list[Any]]) -> None:
    specs, kv_format = layers(SHAPES[key[1]]), layout.kv_format(RELEASE, "bf16")
    measured = [maxima.MeasuredMaximum(*row[2:]) for row in rows]
    found = maxima.explaining_free_bytes(measured, specs, kv_format=kv_format, tokens_per_block=BLOCK)
    assert found is not None
    per_token = layout.element_bytes(layout.pool_elements(specs, tp=key[2]), bits=16, elements_a_scale=None)
    for free in found:
        for row in measured:
            blocks = int(free * row.frac) // per_token // BLOCK
            assert blocks // -(-(row.isl + row.osl + 1000) // BLOCK) == row.max_concurrent


def test_contradicting_maxima_have_no_free_memory() -> None:
    rows = [maxima.MeasuredMaximum(1, 2048, 2048, 0.8, 78), maxima.MeasuredMaximum(1, 2048, 2048, 0.8, 90)]
    specs = layers(SHAPES["Llama-3.1-8B"])
    found = maxima.explaining_free_bytes(
        rows, specs, kv_format=layout.kv_format(RELEASE, "bf16"), tokens_per_block=BLOCK
    )
    assert found is None


@pytest.mark.parametrize(
    ("shape", "dtype", "tokens", "printed"),
    [
        ({"layers": 30, "kv_heads": 3, "head_dim": 64}, "bf16", 422_048, "9.06"),
        ({"layers": 36, "kv_heads": 8, "head_dim": 64}, "bf16", 86_720, "5.95"),
        ({"layers": 24, "kv_heads": 8, "head_dim": 64}, "bf16", 4_128, "0.19"),
        ({"layers": 36, "kv_heads": 8, "head_dim": 128}, "fp8", 46_208, "3.17"),
        ({"layers": 61, "mla_dim": 576}, "fp8", 5_073_376, "166.02"),
        ({"layers": 32, "kv_heads": 8, "head_dim": 128}, "fp8", 860_320, "52.51"),
        ({"layers": 32, "kv_heads": 8, "head_dim": 128}, "bf16", 220_480, "26.91"),
        ({"layers": 32, "kv_heads": 8, "head_dim": 128}, "fp8", 263_008, "16.05"),
    ],
)
def test_the_allocated_line_is_the_one_that_public_logs_print(
    shape: dict[str, int], dtype: str, tokens: int, printed: str
) -> None:
    elements = layout.pool_elements(layers(shape), tp=1)
    size = layout.printed_bytes(elements, **layout.kv_format(RELEASE, dtype)._asdict())
    assert pool.printed_gib(pool_tokens=tokens, printed_bytes_per_token=size) == printed
