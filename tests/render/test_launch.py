"""Launch commands: nothing but what was set, in the engine's own words, safe to paste."""

from __future__ import annotations

import shlex

import pytest

from enginemem.comparison import ENGINES
from enginemem.configuration import read
from enginemem.launch import launch
from enginemem.release import load_release
from enginemem.scenario import PLAN_INPUTS, Scenario
from public_configs import CONFIGS

MODELOPT = {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}


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


FLAGS = {
    # vLLM 0.32.0: engine/arg_utils.py, EngineArgs.add_cli_args.
    "vllm": {
        "--tensor-parallel-size", "--max-model-len", "--kv-cache-dtype", "--quantization", "--gpu-memory-utilization",
        "--max-num-seqs", "--max-num-batched-tokens", "--watermark", "--kv-cache-memory-bytes",
        "--num-gpu-blocks-override", "--block-size",
    },
    # SGLang 0.5.22: srt/arg_groups/fields (parallel, model, schedule, exec_); a field's flag is its name with dashes.
    "sglang": {
        "--model-path", "--tp-size", "--context-length", "--kv-cache-dtype", "--quantization", "--mem-fraction-static",
        "--chunked-prefill-size", "--max-running-requests", "--schedule-conservativeness", "--page-size",
        "--cuda-graph-max-bs-decode",
    },
    # TensorRT-LLM 1.2.1: commands/serve.py, read in an older and a newer text around the tag.
    "tensorrt-llm": {
        "--tp_size", "--max_seq_len", "--kv_cache_free_gpu_memory_fraction", "--max_batch_size", "--max_num_tokens",
        "--enable_chunked_prefill", "--extra_llm_api_options",
    },
}  # fmt: skip
"""The flags that exist at the pinned releases, of those that any setting here needs."""

KEYS = {
    "kv_cache_config": {"dtype", "tokens_per_block", "free_gpu_memory_fraction"},
    "scheduler_config": {"capacity_scheduler_policy"},
    "cuda_graph_config": {"batch_sizes", "enable_padding"},
}
"""TensorRT-LLM 1.2.1: llmapi/llm_args.py, KvCacheConfig, SchedulerConfig and CudaGraphConfig."""


def everything(column: str) -> dict[str, object]:
    """Every setting that reaches the command of an engine, at a value that is no default."""
    samples = {"count": "64", "decimal": "0.5", "quantity": "8GB", "flag": "true", "counts": "1,2,4"}
    inputs: dict[str, object] = {"tp": 2, "weight_dtype": "fp8", "kv_dtype": "fp8", "max_model_len": 8192}
    for field in PLAN_INPUTS:
        if field.section == column and field.key != "vllm.num_gpu_blocks_override":
            inputs[field.key] = field.choices()[-1] if field.choices is not None else samples[field.kind]
    return inputs


@pytest.mark.parametrize("column", list(ENGINES))
def test_every_flag_exists_at_the_pinned_release(column: str) -> None:
    # Two settings that do not stand beside the others: the second number of blocks, and a fraction without the file.
    alone = {"vllm.num_gpu_blocks_override": 64, "tensorrt-llm.free_gpu_memory_fraction": "0.5"}
    texts = [command(column, **everything(column)), *[command(column, **{key: alone[key]}) for key in alone]]
    assert {word for text in texts for word in text.split() if word.startswith("--")} == FLAGS[column]


def test_every_key_of_the_file_exists_at_the_pinned_release() -> None:
    body = command("tensorrt-llm", **everything("tensorrt-llm")).partition("<<'EOF'\n")[2].partition("EOF\n")[0]
    found: dict[str, set[str]] = {}
    for line in body.splitlines():
        name = line.partition(":")[0]
        if not line.startswith(" "):
            section = name
            found[section] = set()
        else:
            found[section].add(name.strip())
    assert found == KEYS


def test_a_section_of_the_file_takes_the_flags_of_that_section_along() -> None:
    # The file overwrites what flags say, a section as a whole: beside a flag the fraction would be lost.
    text = command("tensorrt-llm", **{"kv_dtype": "fp8", "tensorrt-llm.free_gpu_memory_fraction": "0.8"})
    assert "kv_cache_config:\n  dtype: fp8\n  free_gpu_memory_fraction: 0.8\n" in text
    assert "--kv_cache_free_gpu_memory_fraction" not in text
    alone = command("tensorrt-llm", **{"tensorrt-llm.free_gpu_memory_fraction": "0.8"})
    assert alone.endswith("--kv_cache_free_gpu_memory_fraction 0.8")


def test_weights_are_quantised_at_load_where_the_engine_does_that() -> None:
    assert command("vllm", weight_dtype="fp8").endswith("--quantization fp8_per_tensor")
    assert command("sglang", weight_dtype="fp8").endswith("--quantization fp8")
    found = launch(Scenario(weight_dtype="fp8"), load_release("tensorrt-llm"))
    assert found.notes == (
        "Not in this command: the FP8 weights. Serve a checkpoint that was quantised to FP8 instead.",
    )


@pytest.mark.parametrize("column", list(ENGINES))
@pytest.mark.parametrize(("dtype", "asked"), [("fp8", "FP8"), ("bf16", "16-bit")])
def test_a_quantised_checkpoint_keeps_its_method(column: str, dtype: str, asked: str) -> None:
    found = launch(Scenario(model="gpt-oss-20b", weight_dtype=dtype), load_release(column))
    assert "--quantization" not in found.command
    assert found.notes[0].startswith(f"Not in this command: the {asked} weights.")
    assert "mxfp4" in found.notes[0]


def test_a_cache_type_that_trtllm_serve_cannot_be_given_is_said() -> None:
    model = read({**CONFIGS["Qwen--Qwen3-32B"], "quantization_config": MODELOPT})
    scenario = Scenario.of_model(model, kv_dtype="bf16")
    found = launch(scenario, load_release("tensorrt-llm"))
    assert any("the 16-bit KV cache" in note and note.endswith("fp8.") for note in found.notes)
    assert "--kv-cache-dtype bfloat16" in launch(scenario, load_release("vllm")).command


@pytest.mark.parametrize("column", list(ENGINES))
def test_every_knob_reaches_the_command(column: str) -> None:
    samples = {"count": "64", "decimal": "0.5", "quantity": "8GB", "flag": "true", "counts": "1,2,4"}
    plain = command(column)
    for field in PLAN_INPUTS:
        if field.section == column:
            text = field.choices()[0] if field.choices is not None else samples[field.kind]
            assert command(column, **{field.key: text}) != plain, field.key
