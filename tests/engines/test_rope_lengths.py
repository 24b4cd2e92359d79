"""Rope factors: the length that each engine derives, and the rows of the rotary caches. Figures worked by hand."""

from typing import Any

import pytest

from enginemem import Architecture, Scenario, compare
from enginemem.engines.plan import EnginePlan
from enginemem.engines.sglang.length import rotary_bytes
from enginemem.render.auto import auto_texts

BASE: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "torch_dtype": "bfloat16",
    "hidden_size": 4_096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32_000,
    "max_position_embeddings": 4_096,
}
SCALES = 32 * 16  # four 32-bit scales in each attention layer


def model(rope: dict[str, Any] | None = None, **changes: Any) -> Architecture:
    return Architecture.from_hf_config(BASE | {"rope_scaling": rope} | changes)


def plans(own: Architecture, **inputs: Any) -> dict[str, EnginePlan]:
    scenario = Scenario(gpu="h200-sxm", prompt=500, max_tokens=500, **inputs)
    return dict(compare(scenario.with_model(own)).engines)


def lengths(own: Architecture, **inputs: Any) -> list[Any]:
    """vLLM's max_model_len, SGLang's context length, TensorRT-LLM's max_seq_len."""
    found = plans(own, **inputs)
    names = {"vllm": "max_model_len", "sglang": "context_length", "tensorrt-llm": "max_seq_len"}
    assert [plan.status for plan in found.values()] == ["ok"] * 3, [plan.reason for plan in found.values()]
    return [found[engine].resolved[name].value for engine, name in names.items()]


def buffers(own: Architecture) -> Any:
    (step,) = [step for step in plans(own)["vllm"].steps if step.id == "vllm.weights.buffers"]
    return step.value - SCALES  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["linear", "dynamic"])
def test_linear_and_dynamic_factors_stretch_the_length(kind: str) -> None:
    assert lengths(model({"type": kind, "factor": 4.0})) == [16_384] * 3
    assert lengths(model({"rope_type": kind, "factor": 2})) == [8_192] * 3


def test_a_part_of_a_token_is_cut_by_two_engines_and_rounded_up_by_the_third() -> None:
    # 4,096 x 1.1 = 4,505.6
    assert lengths(model({"type": "linear", "factor": 1.1})) == [4_505, 4_505, 4_506]


@pytest.mark.parametrize("kind", ["llama3", "yarn"])
def test_factors_of_other_types_leave_the_length(kind: str) -> None:
    rope = {"rope_type": kind, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    assert lengths(model(rope | {"original_max_position_embeddings": 2_048})) == [4_096] * 3
    # Transformers fills in the original length, so SGLang does not multiply either.
    assert lengths(model(rope)) == [4_096] * 3


def test_sglang_leaves_a_factor_whose_original_length_is_stated() -> None:
    rope = {"type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 1_024}
    assert lengths(model(rope)) == [16_384, 4_096, 16_384]


def test_a_plain_rope_with_a_factor_is_stretched_too() -> None:
    assert lengths(model({"rope_type": "default", "factor": 2.0})) == [8_192] * 3


def test_longrope_is_served_at_its_first_length_by_vllm_alone() -> None:
    rope = {"type": "longrope", "short_factor": [1.0] * 64, "long_factor": [1.0] * 64}
    beside = model(rope, max_position_embeddings=131_072, original_max_position_embeddings=4_096)
    assert lengths(beside) == [4_096, 131_072, 131_072]
    # Asked for, vLLM goes up to the whole length.
    assert lengths(beside, max_model_len=100_000) == [100_000] * 3
    inside = model(rope | {"original_max_position_embeddings": 4_096}, max_position_embeddings=131_072)
    assert lengths(inside) == [131_072] * 3
    # Phi's class has the first length of 4,096 without the file's saying so.
    phi = BASE | {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "max_position_embeddings": 131_072}
    own = Architecture.from_hf_config(phi | {"rope_scaling": rope})
    assert lengths(own) == [4_096, 131_072, 131_072]
    assert any("original_max_position_embeddings 4,096" in note for note in own.notes)


def test_more_than_the_stretched_length_is_refused() -> None:
    own = model({"type": "linear", "factor": 4.0})
    assert lengths(own, max_model_len=16_384) == [16_384] * 3
    found = plans(own, max_model_len=16_385)
    assert found["vllm"].status == found["sglang"].status == "refused"
    assert "16,384" in (found["vllm"].reason or "")
    assert "16,384" in (found["sglang"].reason or "")
    assert found["tensorrt-llm"].resolved["max_seq_len"].value == 16_384


def test_vllm_and_sglang_take_lengths_under_other_names_in_their_own_order() -> None:
    # vLLM: the smallest, 4,096 x 4; SGLang: the first by its order of names, 16,384 x 4.
    own = model({"type": "linear", "factor": 4.0}, max_sequence_length=16_384)
    assert lengths(own) == [16_384, 65_536, 16_384]
    assert lengths(model(max_sequence_length=2_048)) == [2_048, 2_048, 4_096]
    assert lengths(model(model_max_length=8_192)) == [8_192, 8_192, 4_096]


def test_gemma_3_states_its_length_with_the_factor_applied() -> None:
    gemma = BASE | {
        "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "head_dim": 128, "sliding_window": 1_024,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    }  # fmt: skip
    assert lengths(Architecture.from_hf_config(gemma)) == [4_096, 4_096, 32_768]


def test_a_factor_inside_a_multimodal_configuration_is_not_modeled_for_tensorrt_llm() -> None:
    inner = BASE | {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    outer = {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": inner | {"head_dim": 128, "sliding_window": 1_024},
        "vision_config": {"hidden_size": 1_152, "num_hidden_layers": 27},
    }
    plan = plans(Architecture.from_hf_config(outer))["tensorrt-llm"]
    assert plan.status == "not_modeled"
    assert "multimodal configuration" in (plan.reason or "")


def test_a_type_that_the_engines_do_not_know_is_said() -> None:
    found = plans(model({"type": "spiral", "factor": 2.0}))
    for engine in ("vllm", "sglang"):
        assert found[engine].status == "not_modeled"
        assert "spiral" in (found[engine].reason or "")


@pytest.mark.parametrize(
    ("rope", "rows"),
    [
        (None, 4_096),
        ({"type": "linear", "factor": 4.0}, 16_384),
        ({"type": "linear", "factor": 1.1}, 4_506),  # arange(4,505.6)
        ({"type": "dynamic", "factor": 4.0}, 4_096),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2_048}, 8_192),
        ({"type": "yarn", "factor": 4.0}, 16_384),  # from the length itself, as Transformers fills it in
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 2_048}, 4_096),
        ({"type": "longrope", "original_max_position_embeddings": 1_024}, 5_120),
    ],
)
def test_the_rotary_cache_has_the_rows_of_its_class(rope: dict[str, Any] | None, rows: int) -> None:
    own = model(rope)
    assert buffers(own) == rows * 128 * 2
    (turned,) = own.ropes
    wide = 2 * rows * 128 * 2 if rope and rope["rope_type" if "rope_type" in rope else "type"] == "longrope" else 0
    # SGLang keeps 32-bit caches; LongRoPE's stay narrow but stand there twice.
    assert rotary_bytes(turned, element=4) == (wide or rows * 128 * 4)


def test_the_form_says_what_auto_leads_to_in_the_engines() -> None:
    def shown(own: Architecture) -> str:
        scenario = Scenario(gpu="h200-sxm", prompt=500, max_tokens=500)
        return auto_texts(compare(scenario.with_model(own)))["auto.max_model_len"]

    assert shown(model()) == "4,096"
    assert shown(model({"type": "linear", "factor": 4.0})) == "16,384"
    assert shown(model({"type": "linear", "factor": 1.1})) == "4,505 or 4,506"
