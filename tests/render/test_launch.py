"""Launch commands: nothing but what was set, in the engine's own words, safe to paste."""

from __future__ import annotations

import shlex

import pytest

from enginemem.comparison import ENGINES
from enginemem.launch import launch
from enginemem.release import load_release
from enginemem.scenario import PLAN_INPUTS, Scenario


def command(column: str, **inputs: object) -> str:
    return launch(Scenario(**inputs), load_release(column)).command


def test_defaults_need_no_options() -> None:
    assert command("vllm") == "vllm serve meta-llama/Llama-3.1-8B"
    assert command("sglang") == "sglang serve --model-path meta-llama/Llama-3.1-8B"
    assert command("tensorrt-llm") == "trtllm-serve meta-llama/Llama-3.1-8B"


def test_another_engine_knob_changes_nothing() -> None:
    assert command("sglang", **{"vllm.max_num_seqs": 64}) == command("sglang")


def test_shared_settings_take_each_engine_own_flag() -> None:
    assert shlex.split(command("vllm", tp=2, max_model_len=8192)) == [
        "vllm", "serve", "meta-llama/Llama-3.1-8B", "--tensor-parallel-size", "2", "--max-model-len", "8192",
    ]  # fmt: skip
    assert command("tensorrt-llm", tp=2).endswith("--tp_size 2")


def test_keys_of_a_configuration_file_go_into_one() -> None:
    text = command("tensorrt-llm", **{"tensorrt-llm.tokens_per_block": "64", "tensorrt-llm.cuda_graph_padding": True})
    assert "kv_cache_config:\n  tokens_per_block: 64\n" in text
    assert "cuda_graph_config:\n  enable_padding: true\n" in text
    assert text.endswith("--extra_llm_api_options engine-options.yaml")


def test_bytes_are_given_whole() -> None:
    assert "--kv-cache-memory-bytes 536870912" in command("vllm", **{"vllm.kv_cache_memory_bytes": "0.5GiB"})


@pytest.mark.parametrize("column", list(ENGINES))
def test_every_knob_reaches_the_command(column: str) -> None:
    samples = {"count": "64", "decimal": "0.5", "quantity": "8GB", "flag": "true", "counts": "1,2,4"}
    plain = command(column)
    for field in PLAN_INPUTS:
        if field.section == column:
            text = field.choices()[0] if field.choices is not None else samples[field.kind]
            assert command(column, **{field.key: text}) != plain, field.key
