"""More families and older files, with the parameters that Transformers counts for them.

Files without a source are written from memory: unverified, and no preset is made of them. `parameters` are those of the
model that Transformers 5.24.0 builds from the same fields without weights, routing corrections included; for classes
that it lacks (Step 3.7, Kimi K2) those of the class that stands for them there.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from enginemem import Architecture, InvalidInputs, Scenario, compare

FILES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("more_configs.json").read_text(encoding="utf-8"))
# Published counts, for files whose count everybody can look up.
PUBLISHED = {
    "Llama-2-70b": 68_976_648_192,
    "Llama-3.3-70B": 70_553_706_496,
    "Mistral-7B-v0.1": 7_241_732_096,
    "Qwen2.5-72B": 72_706_203_648,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "Phi-3-mini-4k": 3_821_079_552,
    "DeepSeek-Coder-V2-Lite": 15_706_484_224,
    "SmolLM3-3B": 3_075_098_624,
    "Command-R": 34_980_831_232,
}


def read(name: str, **changes: Any) -> Architecture:
    return Architecture.from_hf_config(FILES[name]["config"] | changes)


def without(name: str, *fields: str) -> dict[str, Any]:
    return {key: value for key, value in FILES[name]["config"].items() if key not in fields}


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_parameters_are_those_of_the_class(name: str) -> None:
    assert read(name).parameters == FILES[name]["parameters"] == PUBLISHED.get(name, FILES[name]["parameters"])


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_engine_answers(name: str) -> None:
    model = read(name)
    tp = max(size for size in (1, 2, 4, 8) if model.tensor_parallel_problem(size) is None)
    for plan in compare(Scenario(gpu="h200-sxm", tp=tp).with_model(model)).engines.values():
        assert plan.status == "ok" or plan.reason


def test_a_missing_field_takes_the_classs_default_and_says_so() -> None:
    model = read("gemma-3-4b")
    assert (model.heads, model.kv_heads, model.head_dim, model.vocabulary) == (8, 4, 256, 262_208)
    assert any("num_attention_heads 8" in note and "vocab_size 262,208" in note for note in model.notes)
    # Mistral's class has 8 KV heads and a window; Llama's has as many KV heads as heads.
    bare = Architecture.from_hf_config(without("Mistral-7B-v0.1", "num_key_value_heads", "sliding_window"))
    assert [(spec.kind, spec.window, spec.kv_heads) for spec in bare.layers] == [("sliding", 4_096, 8)]
    assert Architecture.from_hf_config(without("TinyLlama-1.1B", "num_key_value_heads")).kv_heads == 32


def test_a_null_is_no_missing_field() -> None:
    assert [spec.kind for spec in read("Mistral-7B-v0.2").layers] == ["full"]


def test_sizes_that_make_a_model_are_never_taken_from_the_class() -> None:
    for field in ("hidden_size", "num_hidden_layers"):
        with pytest.raises(InvalidInputs) as caught:
            Architecture.from_hf_config(without("Llama-3.3-70B", field))
        assert [error.field for error in caught.value.errors] == [f"config.{field}"]


def test_tied_embeddings_are_the_classs_where_the_file_is_silent() -> None:
    assert {name: read(name).tied_embeddings for name in ("Llama-2-70b", "gemma-2-9b", "Command-R", "SmolLM3-3B")} == {
        "Llama-2-70b": False,
        "gemma-2-9b": True,
        "Command-R": True,
        "SmolLM3-3B": True,
    }


def test_a_scaling_is_read_in_its_old_and_in_its_new_form() -> None:
    plain = {"rope_theta": 10_000.0, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4_096}
    old = read("Llama-2-70b", rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4_096})
    new = read("Llama-2-70b", rope_parameters=plain)
    assert old.ropes == new.ropes
    assert old.ropes[0].factor == 4


def test_an_indexer_that_the_file_leaves_out_is_the_classs() -> None:
    (spec,) = read("zai-org/GLM-5-FP8").layers
    assert spec.index_head == 128


def test_window_layers_of_step_have_the_heads_that_the_file_states() -> None:
    name = "stepfun-ai/Step-3.7-Flash-FP8"
    assert any("attention_other_setting" in note for note in read(name).notes)
    other = {
        "attention_type": "sliding_attention",
        "num_attention_heads": 96,
        "num_attention_groups": 8,
        "head_dim": 128,
    }
    wide = read(name, attention_other_setting=other)
    # 32 heads more in the query and output projections and in the gate of 33 window layers of 45.
    assert wide.parameters - read(name).parameters == 33 * 4_096 * (2 * 32 * 128 + 32)
    assert not any("attention_other_setting" in note for note in wide.notes)


def test_matrices_of_deepseek_v4_are_stored_as_its_groups_say() -> None:
    model = read("RedHatAI/DeepSeek-V4-Flash-NVFP4-FP8")
    forms = {(t.kind, t.form.name) for block in model.inventory.blocks for t in block.tensors if t.linear}
    assert forms == {
        ("attention", "fp8_block"),
        ("indexer", "fp8_block"),
        ("experts", "nvfp4"),
        ("shared_experts", "nvfp4"),
    }
