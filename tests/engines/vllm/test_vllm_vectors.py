"""Figures that the engine's own code gave: KV plans, capture lists, defaults, and runs of its scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enginemem.engines.plan import SteadyState
from enginemem.engines.vllm.admission import steady_limits, steady_state
from enginemem.engines.vllm.defaults import engine_defaults
from enginemem.engines.vllm.dispatch import decode_capture_sizes
from enginemem.engines.vllm.layout import KvRow, max_in_flight_tokens
from enginemem.engines.vllm.pool import KvPool, as_fields, size_kv_cache
from enginemem.release import load_release
from enginemem.units import MIB

VECTORS = Path(__file__).parents[2] / "vectors" / "vllm"
RELEASE = load_release("vllm")
CLASSES = {"llama-3.1-8b": "LlamaForCausalLM", "gpt-oss-20b": "GptOssForCausalLM"}


def cases(name: str) -> list[Any]:
    document = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    assert len(document["cases"]) == document["count"]
    return [pytest.param(case, id=case["id"]) for case in document["cases"]]


def in_flight(case: dict[str, Any], *, asynchronous: bool = True) -> int:
    return max_in_flight_tokens(
        pipeline_parallel=case.get("pipeline_parallel", 1),
        max_num_batched_tokens=case["max_num_batched_tokens"],
        extra_batches=1 if asynchronous else 0,
    )


def capability(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


@pytest.mark.parametrize("case", cases("kv_sizing"))
def test_kv_cache_is_sized_as_the_engine_sizes_it(case: dict[str, Any]) -> None:
    got = size_kv_cache(
        ranks=[[KvRow.of(**row) for row in rank] for rank in case["ranks"]],
        available_bytes=case["available_bytes"],
        max_model_len=case["max_model_len"],
        in_flight=in_flight(case),
        decode_context_parallel=case["decode_context_parallel"],
        num_gpu_blocks_override=case["num_gpu_blocks_override"],
        auto_max_model_len=case["auto_max_model_len"],
        prefix_caching=case["prefix_caching"],
    )
    if isinstance(got, KvPool):
        assert as_fields(got) == case.get("expect")
    else:
        assert {name: value for name, value in got._asdict().items() if value is not None} == case.get("expect_error")


@pytest.mark.parametrize("case", cases("graph_capture"))
def test_capture_sizes_are_those_of_the_engine(case: dict[str, Any]) -> None:
    sizes = decode_capture_sizes(
        RELEASE,
        family=capability(case["compute_capability"])[0],
        max_num_seqs=case["max_num_seqs"],
        max_num_batched_tokens=case["max_num_batched_tokens"],
        num_speculative_tokens=case["num_speculative_tokens"],
    )
    assert list(sizes) == case["sizes"]
    assert (len(sizes), sizes[-1]) == (case["num_sizes"], case["max_cudagraph_capture_size"])
    assert RELEASE.values["cudagraph_mode"] == case["cudagraph_mode"]


@pytest.mark.parametrize("case", cases("defaults"))
def test_defaults_follow_gpu_and_usage(case: dict[str, Any]) -> None:
    got = engine_defaults(
        RELEASE,
        nvml_total=case["nvml_total_MiB"] * MIB,
        device_name=case["device_name"],
        compute_capability=capability(case["compute_capability"]),
        max_model_len=case["model_max_len"],
        class_name=CLASSES[case["model"]],
        usage=case["usage_context"],
    )._asdict()
    assert got == {name: case[name] for name in got}


def law(case: dict[str, Any]) -> SteadyState:
    limits = steady_limits(
        [KvRow.of(**group) for group in case["kv_groups"]],
        prompt=case["prompt_tokens"],
        mean_output=case["drawn_mean_output"],
        progress=case["drawn_length_biased_progress"],
        num_blocks=case["num_blocks"],
        max_num_seqs=case["max_num_seqs"],
        max_num_batched_tokens=case["max_num_batched_tokens"],
        watermark=case["watermark"],
        in_flight=in_flight(case, asynchronous=case["async_scheduling"]),
        prefill_steps=RELEASE.integer("steady_prefill_steps"),
    )
    return steady_state(limits, RELEASE, prompt=case["prompt_tokens"], mean_output=case["mean_output_tokens"])


STEADY = [param for param in cases("scheduler_steady_state") if param.values[0]["steady"]]


@pytest.mark.parametrize("case", STEADY)
def test_law_is_within_two_percent_of_the_scheduler(case: dict[str, Any]) -> None:
    state, measured = law(case), case["mean_running"]
    assert abs(state.mean / measured - 1) <= 0.02
    assert state.low <= measured <= state.high
    assert state.regime == "memory"


def test_long_outputs_get_an_interval_of_at_most_a_quarter() -> None:
    case = next(param.values[0] for param in STEADY if param.values[0]["mean_output_tokens"] >= 1000)
    state = law(case)
    assert (state.high - state.low) / state.mean <= 0.25


def test_watermark_lowers_the_steady_state_as_measured() -> None:
    by_watermark = {param.values[0]["watermark"]: param.values[0] for param in STEADY}
    marked = by_watermark[0.01]
    without = law({**marked, "watermark": 0.0}).mean
    assert law(marked).mean < without
    assert abs(law(marked).mean - marked["mean_running"]) < abs(without - marked["mean_running"])
