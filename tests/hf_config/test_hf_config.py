"""A public configuration becomes exact facts, or an error that names the field."""

from typing import Any

import pytest

from enginemem import Architecture, InvalidInputs
from enginemem.tensors import parameters_by_kind
from public_configs import CONFIGS, REFUSED

# Published totals and active parameters, in billions, as the model cards round them.
PUBLISHED = {
    "deepseek-ai--DeepSeek-V3": (671, 37),
    "deepseek-ai--DeepSeek-V2-Lite": (15.7, 2.4),
    "moonshotai--Kimi-K2-Instruct": (1_026, 32),
    "Qwen--Qwen3-30B-A3B": (30.5, 3.3),
    "Qwen--Qwen3-235B-A22B": (235, 22),
    "Qwen--Qwen3-Coder-480B-A35B-Instruct": (480, 35),
    "Qwen--Qwen3.5-397B-A17B": (397, 17),
    "Qwen--Qwen3.5-122B-A10B": (122, 10),
    "openai--gpt-oss-120b": (117, 5.1),
    "openai--gpt-oss-20b": (20.9, 3.6),
    "meta-llama--Llama-4-Maverick-17B-128E-Instruct": (400, 17),
    "meta-llama--Meta-Llama-3.1-405B": (405.9, 405.9),
    "mistralai--Mixtral-8x7B-v0.1": (46.7, 12.9),
    "mistralai--Mixtral-8x22B-v0.1": (140.6, 39),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.6, 3.6),
    "nvidia--Llama-3_3-Nemotron-Super-49B-v1": (49.9, 49.9),
    "MiniMaxAI--MiniMax-M2.5": (229, 10),
    "google--gemma-4-26B-A4B": (25.2, 3.8),
    "XiaomiMiMo--MiMo-V2-Flash": (309, 15),
    "microsoft--Phi-mini-MoE-instruct": (7.6, 2.4),
    "deepseek-ai--DeepSeek-V4-Flash": (284, 13),
    "deepseek-ai--DeepSeek-V4-Pro": (1_573, 49),
    "stepfun-ai--Step-3.7-Flash": (196, 11),
}
LLAMA: dict[str, Any] = CONFIGS["meta-llama--Meta-Llama-3.1-8B"]


def errors_of(config: object) -> list[str]:
    with pytest.raises(InvalidInputs) as caught:
        Architecture.from_hf_config(config)  # type: ignore[arg-type]
    return [error.field for error in caught.value.errors]


@pytest.mark.parametrize("name", sorted(set(CONFIGS) - set(REFUSED)))
def test_a_public_configuration_is_read(name: str) -> None:
    model = Architecture.from_hf_config(CONFIGS[name])
    assert model.parameters == sum(parameters_by_kind(model.inventory).values())
    assert model.num_layers == sum(block.layers for block in model.inventory.blocks)
    assert model.active_parameters <= model.parameters


def test_at_most_a_tenth_of_the_public_configurations_is_refused() -> None:
    refused = {}
    for name, config in CONFIGS.items():
        try:
            Architecture.from_hf_config(config)
        except InvalidInputs as refusal:
            refused[name] = refusal.errors[0].field
    assert refused == REFUSED
    assert 10 * len(refused) <= len(CONFIGS)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameters_are_those_that_the_model_card_says(name: str) -> None:
    model, (total, active) = Architecture.from_hf_config(CONFIGS[name]), PUBLISHED[name]
    assert model.parameters / 1e9 == pytest.approx(total, rel=0.01)
    # Cards differ in whether embeddings are active.
    assert model.active_parameters / 1e9 == pytest.approx(active, rel=0.2)


def test_llama_8b_is_counted_tensor_by_tensor() -> None:
    kinds = parameters_by_kind(Architecture.from_hf_config(LLAMA).inventory)
    hidden, wide, rows, layers = 4_096, 14_336, 128_256, 32
    assert kinds == {
        "embedding": rows * hidden,
        "head": rows * hidden,
        "attention": layers * hidden * (4_096 + 2 * 1_024 + 4_096),
        "mlp": layers * 3 * hidden * wide,
        "norm": (2 * layers + 1) * hidden,
    }


def test_latent_attention_keeps_one_row_and_the_indexers_key() -> None:
    (spec,) = Architecture.from_hf_config(CONFIGS["deepseek-ai--DeepSeek-V3.2"]).layers
    assert (spec.kind, spec.layers, spec.head_size, spec.v_head_size, spec.index_head) == ("mla", 61, 576, 0, 128)


def test_shared_indexers_have_no_key_of_their_own() -> None:
    specs = Architecture.from_hf_config(CONFIGS["zai-org--GLM-5.2"]).layers
    assert sum(spec.layers for spec in specs if spec.index_head) == 21
    assert sum(spec.layers for spec in specs) == 78


def test_window_layers_alternate_in_gpt_oss() -> None:
    specs = Architecture.from_hf_config(CONFIGS["openai--gpt-oss-20b"]).layers
    assert [(spec.kind, spec.window) for spec in specs[:2]] == [("sliding", 128), ("full", None)]
    assert len(specs) == 24


def test_llama_4_has_a_full_layer_after_three_chunked_ones() -> None:
    specs = Architecture.from_hf_config(CONFIGS["meta-llama--Llama-4-Scout-17B-16E-Instruct"]).layers
    assert [(spec.kind, spec.layers, spec.chunk) for spec in specs[:2]] == [("chunked", 3, 8_192), ("full", 1, None)]


def test_recurrent_layers_state_the_shapes_of_their_states() -> None:
    first = Architecture.from_hf_config(CONFIGS["Qwen--Qwen3.5-397B-A17B"]).layers[0]
    assert (first.kind, first.layers) == ("recurrent", 3)
    assert first.states == ((2 * 16 * 128 + 64 * 128, 3), (64, 128, 128))


def test_blocks_without_attention_cache_nothing() -> None:
    specs = Architecture.from_hf_config(CONFIGS["nvidia--Llama-3_3-Nemotron-Super-49B-v1"]).layers
    assert sum(spec.layers for spec in specs if spec.kind == "full") == 49
    assert sum(spec.layers for spec in specs if spec.kind == "none") == 31


@pytest.mark.parametrize(
    ("name", "form", "kv"),
    [
        ("deepseek-ai--DeepSeek-V3", "fp8_block", None),
        ("Qwen--Qwen3-32B-FP8-Static-PerTensor", "fp8", "fp8"),
        ("moonshotai--Kimi-K2.5", "int4", None),
        ("nvidia--MiniMax-M2.5-NVFP4", "nvfp4", "fp8"),
        ("openai--gpt-oss-120b", "mxfp4", None),
    ],
)
def test_quantised_matrices_and_kv_cache_are_those_that_the_checkpoint_names(
    name: str, form: str, kv: str | None
) -> None:
    model = Architecture.from_hf_config(CONFIGS[name])
    last = model.inventory.blocks[-1].tensors
    matrix = next(t for t in last if t.kind in ("experts", "mlp") and t.linear)
    assert matrix.form.name == form
    assert {t.form.name for t in model.inventory.outer} == {"bf16"}
    assert model.kv_cache_dtype == kv


def test_ignored_matrices_stay_in_the_models_type() -> None:
    model = Architecture.from_hf_config(CONFIGS["moonshotai--Kimi-K2.5"])
    kinds = {(t.kind, t.form.name) for block in model.inventory.blocks for t in block.tensors if t.linear}
    assert kinds == {("attention", "bf16"), ("mlp", "bf16"), ("shared_experts", "bf16"), ("experts", "int4")}


def test_a_separate_quantisation_file_is_read() -> None:
    config = CONFIGS["nvidia--Llama-3.1-70B-Instruct-FP8"]
    quantised = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    model = Architecture.from_hf_config(config, hf_quant_config=quantised)
    assert model.kv_cache_dtype == "fp8"
    assert model.inventory.stored_bytes < 0.52 * 2 * model.parameters


def test_every_bad_field_is_named_at_once() -> None:
    broken = {**LLAMA, "hidden_size": -1, "vocab_size": "many", "num_hidden_layers": None}
    assert errors_of(broken) == ["config.hidden_size", "config.num_hidden_layers", "config.vocab_size"]


def test_a_nested_field_is_named_with_its_path() -> None:
    config = CONFIGS["meta-llama--Llama-4-Scout-17B-16E-Instruct"]
    inner = {**config["text_config"], "num_local_experts": 1.5}
    assert "config.text_config.num_local_experts" in errors_of({**config, "text_config": inner})


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("google--gemma-4-26B-A4B", "top_k_experts"),
        ("Qwen--Qwen3-30B-A3B", "num_experts_per_tok"),
        ("moonshotai--Kimi-K3", "num_experts_per_token"),
    ],
)
def test_more_active_experts_than_there_are_is_refused_by_name(name: str, field: str) -> None:
    config = CONFIGS[name]
    inner = config.get("text_config", config) | {field: 60_000}
    nested = "text_config" in config
    assert errors_of({**config, "text_config": inner} if nested else inner) == [
        f"config.{'text_config.' if nested else ''}{field}"
    ]


@pytest.mark.parametrize("value", ["bitsandbytes", "quark", 3, None])
def test_an_unknown_quantisation_is_refused_by_name(value: object) -> None:
    broken = {**LLAMA, "quantization_config": {"quant_method": value}}
    assert errors_of(broken) == ["config.quantization_config.quant_method"]


def test_an_unknown_class_is_refused_by_name() -> None:
    assert errors_of({**LLAMA, "architectures": ["LlamaForSequenceClassification"]}) == ["config.architectures"]
    assert errors_of({**LLAMA, "model_type": "lama"}) == ["config.model_type"]


@pytest.mark.parametrize("value", [None, [], "text", 5])
def test_what_is_no_object_is_refused(value: object) -> None:
    assert errors_of(value) == ["config"]


def test_a_quantised_checkpoint_has_the_bytes_that_a_start_up_log_states() -> None:
    # 432.90 GiB (WEIGHTS.csv, a log of vLLM 0.26): the 78 layers, and a prediction layer left in 16 bits, which the
    # engines load for speculation only.
    model = Architecture.from_hf_config(CONFIGS["nvidia--GLM-5.2-NVFP4"])
    wide = Architecture.from_hf_config(CONFIGS["zai-org--GLM-5"])
    layer = sum(tensor.stored_bytes for tensor in wide.inventory.blocks[-1].tensors)
    hidden = model.hidden_size
    prediction = layer + 2 * (2 * hidden * hidden + 3 * hidden)
    assert (model.inventory.stored_bytes + prediction) / 2**30 == pytest.approx(432.90, rel=0.001)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # Counted by Transformers 5.24.0 for the same fields; with the language model's, the total on the model's page.
        ("Qwen--Qwen3-VL-2B-Instruct", 406_957_056),
        ("Qwen--Qwen3-VL-30B-A3B-Instruct", 538_631_408),
        ("Qwen--Qwen3.5-9B", 456_010_480),
        ("RedHatAI--Llama-4-Scout-17B-16E-Instruct-FP8-dynamic", 871_932_416),
        ("google--gemma-4-26B-A4B", 572_792_112),
        ("moonshotai--Kimi-K2.5", 471_143_920),
    ],
)
def test_a_vision_encoder_is_sized_and_said_to_be_counted(name: str, parameters: int) -> None:
    model = Architecture.from_hf_config(CONFIGS[name])
    assert model.vision is not None
    assert model.vision.parameters == parameters
    assert any("counted as weights" in note and f"{parameters:,}" in note for note in model.notes)


def test_an_encoder_that_the_file_does_not_size_is_said_to_be_left_out_without_a_size() -> None:
    model = Architecture.from_hf_config({**CONFIGS["moonshotai--Kimi-K2.5"], "vision_config": {"patch_size": 14}})
    assert model.vision is not None
    assert model.vision.parameters is None
    assert any("its weights are left out" in note for note in model.notes)
