"""Parameter and buffer bytes of dense models, against model classes that the engine built without weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enginemem.architecture import load_model
from enginemem.engines.vllm.budget import available_bytes, requested_bytes
from enginemem.engines.vllm.layout import max_in_flight_tokens
from enginemem.engines.vllm.pool import KvPool, size_kv_cache
from enginemem.engines.vllm.rows import model_rows
from enginemem.engines.vllm.weights import buffer_bytes, weight_bytes
from enginemem.release import load_release

VECTORS = Path(__file__).parents[2] / "vectors" / "vllm"
RELEASE = load_release("vllm")
DENSE = ("llama-3.1-8b", "llama-3.2-1b", "qwen3-8b", "qwen3-32b")


def dense_cases() -> list[Any]:
    document = json.loads((VECTORS / "real_models.json").read_text(encoding="utf-8"))
    found = [case for case in document["cases"] if case["model"] in DENSE]
    assert len(found) >= 6
    return [pytest.param(case, id=case["id"]) for case in found]


@pytest.mark.parametrize("case", dense_cases())
def test_parameters_and_buffers_match_to_the_byte(case: dict[str, Any]) -> None:
    model = load_model(case["model"])
    weights = weight_bytes(model, tp=case["tensor_parallel"], linear_bytes=2, vocabulary_multiple=64)
    buffers = buffer_bytes(
        positions=model.max_position,
        rotary_size=model.head_dim,
        element_bytes=2,
        layers=model.num_layers,
        scale_bytes=16,
    )
    assert [weights.total] == case["param_bytes_per_rank"]
    assert [buffers] == case["buffer_bytes_per_rank"]
    requested = requested_bytes(case["total_bytes"], case["gpu_memory_utilization"])
    runtime = case["runtime_bytes_assumed"]
    pool = available_bytes(requested=requested, weights=weights.total + buffers, runtime=runtime)
    assert pool == case["available_bytes"]


@pytest.mark.parametrize("case", dense_cases())
def test_model_rows_give_the_engines_kv_plan(case: dict[str, Any]) -> None:
    arguments = case["engine_args"]
    rows = model_rows(
        load_model(case["model"]),
        tp=case["tensor_parallel"],
        dtype="fp8" if arguments.get("kv_cache_dtype") == "fp8" else "bf16",
        block_size=case["expect"]["groups"][0]["block_size"],
    )
    assert isinstance(rows, list)
    got = size_kv_cache(
        ranks=[rows],
        available_bytes=case["available_bytes"],
        max_model_len=case["expect"]["max_model_len"],
        in_flight=max_in_flight_tokens(
            pipeline_parallel=1, max_num_batched_tokens=case["max_num_batched_tokens"], extra_batches=1
        ),
    )
    assert isinstance(got, KvPool)
    assert got.num_blocks == case["expect"]["num_blocks"]
    assert got.kv_tokens_logged == case["expect"]["kv_tokens_logged"]


def test_fp8_halves_the_layers_matrices_only() -> None:
    model = load_model("llama-3.1-8b")
    wide = weight_bytes(model, tp=1, linear_bytes=2, vocabulary_multiple=64)
    narrow = weight_bytes(model, tp=1, linear_bytes=1, vocabulary_multiple=64)
    # 6,979,321,856 parameters stand in the layers' matrices (worked figures, section 2).
    assert wide.total - narrow.total == 6_979_321_856
    assert (narrow.embedding, narrow.head, narrow.small) == (wide.embedding, wide.head, wide.small)
