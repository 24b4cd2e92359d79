"""The vision encoder in each engine's ledger: bytes worked by hand, cuts over GPUs, and what is only assumed."""

import json
from pathlib import Path
from typing import Any

import pytest

from enginemem import Architecture, Scenario, compare
from enginemem.engines.plan import EnginePlan
from enginemem.engines.vllm.loading import buffer_rules
from enginemem.engines.vllm.weights import loaded
from enginemem.release import load_release
from public_configs import CONFIGS

MORE = json.loads((Path(__file__).parents[1] / "hf_config/more_configs.json").read_text(encoding="utf-8"))
SIGLIP = {"intermediate_size": 4_304, "num_attention_heads": 16, "image_size": 896, "patch_size": 14}
PIXTRAL = {"intermediate_size": 4_096, "num_attention_heads": 16, "patch_size": 14, "head_dim": 64}
QWEN25 = {"intermediate_size": 3_420, "num_heads": 16, "patch_size": 14, "out_hidden_size": 3_584}


def with_encoder(name: str, **fields: Any) -> Architecture:
    config = MORE[name]["config"]
    return Architecture.from_hf_config(config | {"vision_config": config["vision_config"] | fields})


def plans(model: Architecture | str, *, tp: int = 1, **inputs: Any) -> dict[str, EnginePlan]:
    if isinstance(model, str):
        return dict(compare(Scenario(gpu="h200-sxm", tp=tp, model=model, **inputs)).engines)
    return dict(compare(Scenario(gpu="h200-sxm", tp=tp, **inputs).with_model(model)).engines)


def step(plan: EnginePlan, name: str) -> Any:
    return {found.id.partition(".")[2]: found for found in plan.steps}.get(name)


@pytest.mark.parametrize(
    ("model", "published"),
    [
        # The whole checkpoint's parameters as the model's page has them.
        (with_encoder("gemma-3-4b", **SIGLIP), 4_300_079_472),
        (with_encoder("gemma-3-27b", **SIGLIP), 27_432_406_640),
        (with_encoder("Mistral-Small-3.1", **PIXTRAL), 24_011_361_280),
        (with_encoder("Qwen2.5-VL-7B", **QWEN25), 8_292_166_656),
        (Architecture.from_hf_config(CONFIGS["Qwen--Qwen3-VL-2B-Instruct"]), 2_127_532_032),
        (
            Architecture.from_hf_config(CONFIGS["RedHatAI--Llama-4-Scout-17B-16E-Instruct-FP8-dynamic"]),
            108_641_793_536,
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Architecture) else "",
)
def test_language_model_and_encoder_make_the_whole_checkpoint(model: Architecture, published: int) -> None:
    assert model.vision is not None
    assert model.parameters + (model.vision.parameters or 0) == published


def test_a_logged_size_of_loaded_weights_holds_the_encoder() -> None:
    # Mistral-Small-3.2-24B on one H100: "Model loading took 44.76 GiB".
    model, release = with_encoder("Mistral-Small-3.1", **PIXTRAL), load_release("vllm")
    text = loaded(
        model, buffer_rules(release), tp=1, pp=1, whole_experts=False, vocabulary_multiple=64
    )[0]  # fmt: skip
    encoder = step(plans(model)["vllm"], "weights.vision").value
    assert f"{(text.parameter_bytes + text.buffers + encoder) / 2**30:.2f}" == "44.76"
    assert f"{(text.parameter_bytes + text.buffers) / 2**30:.2f}" == "43.94"


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_the_encoder_of_qwen3_vl_is_cut_but_for_norms_positions_and_patches(tp: int) -> None:
    layers, width, inner, out, wide = 27, 1_152, 4_304, 4_096, 4 * 1_152
    cut = layers * (4 * width * width + 3 * width + 2 * width * inner + inner) + 4 * (wide * wide + wide + out * wide)
    copied = layers * (4 * width + 2 * width) + 4 * out + 2 * width + 3 * 2 * wide
    copied += 3 * 2 * 16 * 16 * width + width
    positions = 2_304 * width
    found = plans("qwen3-vl-8b", tp=tp)
    operands = step(found["vllm"], "weights.vision").operands
    assert operands == {"cut": (2 * cut // tp, "bytes"), "copied": (2 * (copied + positions), "bytes")}
    # SGLang keeps learned positions as a vocabulary, cut by rows.
    operands = step(found["sglang"], "weights.vision").operands
    assert operands == {"cut": (2 * (cut + positions) // tp, "bytes"), "copied": (2 * copied, "bytes")}
    # TensorRT-LLM: assumed whole, and said so.
    assumed = step(found["tensorrt-llm"], "weights.vision")
    assert assumed.value == 2 * 576_388_336
    assert "assumption" in assumed.note.lower()
    assert [source.standing for source in assumed.sources] == ["unverified"]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_the_encoder_is_part_of_the_weights_and_leaves_the_pool(engine: str) -> None:
    with_it = Architecture.from_hf_config(CONFIGS["Qwen--Qwen3-VL-8B-Instruct"])
    config = {key: value for key, value in CONFIGS["Qwen--Qwen3-VL-8B-Instruct"].items() if key != "vision_config"}
    without = Architecture.from_hf_config(config)
    knobs: dict[str, Any] = {"sglang.mem_fraction_static": "0.85"}
    more, less = plans(with_it, **knobs)[engine], plans(without, **knobs)[engine]
    assert (more.weights_bytes or 0) - (less.weights_bytes or 0) == 1_152_776_672
    # SGLang sets 100 MiB for image embeddings aside besides; TensorRT-LLM grants a share of what is free.
    besides = {"vllm": 0, "sglang": 100 * 2**20, "tensorrt-llm": -1_152_776_672 // 10}[engine]
    lost = (less.kv_pool_bytes or 0) - (more.kv_pool_bytes or 0)
    assert lost == pytest.approx(1_152_776_672 + besides, abs=64)


def test_decoding_does_not_read_the_encoder() -> None:
    plan = plans("qwen3-vl-8b")["vllm"]
    read = step(plan, "roofline.decode_step").operands["weights"][0]
    assert read == (plan.weights_bytes or 0) - step(plan, "weights.vision").value == 2 * 8_190_735_360


def test_encoders_of_transformers_own_classes_are_whole_on_every_gpu_in_vllm_alone() -> None:
    one, four = plans("gemma-4-26b-a4b"), plans("gemma-4-26b-a4b", tp=4)
    assert step(one["vllm"], "weights.vision").value == step(four["vllm"], "weights.vision").value == 1_145_584_224
    assert "whole" in step(four["vllm"], "weights.vision").note
    matrices = 27 * (4 * 16 * 72 * 1_152 + 3 * 1_152 * 4_304)
    assert step(four["sglang"], "weights.vision").operands["cut"] == (2 * matrices // 4, "bytes")


def test_moonvit_keeps_its_mlps_whole_in_sglang() -> None:
    found, width, inner = plans("kimi-k2.5", tp=8), 1_152, 4_304
    attention, mlp = 27 * (4 * width * width + 3 * width), 27 * (2 * width * inner + inner)
    assert step(found["vllm"], "weights.vision").operands["cut"] == (2 * (attention + mlp) // 8, "bytes")
    assert step(found["sglang"], "weights.vision").operands["cut"] == (2 * attention // 8, "bytes")


def test_heads_that_do_not_divide_leave_the_encoder_of_kimi_k3_whole() -> None:
    model = Architecture.from_hf_config(CONFIGS["moonshotai--Kimi-K3"])
    assert model.vision is not None
    width, inner, across, layers = 1_024, 4_096, 1_536, 27
    layer = 4 * width * across + 2 * width * inner + 2 * width
    joined, hidden = 4 * 1_024, 7_168
    beside = 3 * 14 * 14 * width + 64 * 64 * width + width + joined * joined + hidden * joined + hidden
    assert model.vision.parameters == layers * layer + beside
    from enginemem.engines.vllm.vision import encoder_share

    by_four = encoder_share(model.vision, tp=4, vocabulary_multiple=64)
    by_eight = encoder_share(model.vision, tp=8, vocabulary_multiple=64)
    assert by_four.bytes.cut == 2 * layers * (4 * width * across + 2 * width * inner) // 4
    assert by_eight.bytes == (0, 2 * model.vision.parameters)


def test_classes_that_sglang_serves_without_images_keep_their_fraction() -> None:
    scout = plans("llama-4-scout", tp=8)["sglang"]
    assert step(scout, "weights.vision").value == 0
    assert "--enable-multimodal" in step(scout, "weights.vision").note
    assert "clamp" not in step(scout, "resolve.fraction").expression
    # Gemma 3's encoder is loaded all the same.
    gemma = plans(with_encoder("gemma-3-4b", **SIGLIP))["sglang"]
    assert step(gemma, "weights.vision").value == 2 * 419_816_304
    assert "clamp" not in step(gemma, "resolve.fraction").expression
    assert "images" not in step(gemma, "budget.pool").operands


def test_sglang_lowers_its_fraction_for_an_encoder_by_its_size() -> None:
    def factor(layers: int, width: int) -> float:
        return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (layers * width**2 / (24 * 1_024**2) - 1.0)))

    for model, tp, layers, width in (
        ("qwen3-vl-8b", 1, 24, 1_152),  # its depth stands under another name
        ("gemma-4-26b-a4b", 4, 27, 1_152),
        ("kimi-k2.5", 8, 27, 1_152),  # the class fills in what the file calls vt_num_hidden_layers
    ):
        found = plans(model, tp=tp)["sglang"]
        capacity = step(found, "resolve.capacity").value
        plain = round((capacity - step(found, "reserve.total").value) / capacity, 3)
        assert found.resolved["mem_fraction_static"].value == plain * factor(layers, width)


def test_an_encoder_whose_heads_do_not_divide_is_refused() -> None:
    found = plans(with_encoder("Mistral-Small-3.1", **PIXTRAL | {"num_attention_heads": 6, "head_dim": 170}), tp=4)
    for engine in ("vllm", "sglang"):
        assert found[engine].status == "refused"
        assert "vision encoder has 6 heads" in (found[engine].reason or "")


def test_the_work_of_the_encoder_is_said_to_be_an_assumption() -> None:
    found = plans("qwen3-vl-8b")
    assert "vision encoder at work" in step(found["vllm"], "budget.runtime").note
    assert "assumption" in step(found["vllm"], "budget.runtime").note
    assert "vision encoder at work" in step(found["tensorrt-llm"], "budget.runtime").note
    assert "vision encoder at work" in step(found["sglang"], "budget.slack").note


def test_an_encoder_of_unknown_size_is_said_to_be_left_out() -> None:
    model = with_encoder("Mistral-Small-3.1")
    assert model.vision is not None
    assert model.vision.parameters is None
    assert any("its weights are left out" in note for note in model.notes)
    for plan in plans(model).values():
        assert step(plan, "weights.vision") is None
        assert "without the vision encoder" in step(plan, "weights.total").note.lower()


def test_a_text_model_has_no_word_of_an_encoder() -> None:
    for plan in plans("llama-3.1-8b").values():
        assert not [found.id for found in plan.steps if "vision" in f"{found.id} {found.note}"]


def test_an_option_that_narrows_matrices_makes_the_encoder_an_estimate() -> None:
    found = plans("qwen3-vl-8b", weight_dtype="fp8")
    for engine in ("vllm", "sglang"):
        assert "estimate" in step(found[engine], "weights.vision").note
        assert step(found[engine], "weights.vision").value == 1_152_776_672


def test_a_checkpoint_that_names_its_encoder_leaves_it_in_16_bits() -> None:
    config = CONFIGS["Qwen--Qwen3-VL-8B-Instruct"]
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    listed = fp8 | {"modules_to_not_convert": ["model.visual"]}
    kept = Architecture.from_hf_config(config | {"quantization_config": listed}).vision
    narrow = Architecture.from_hf_config(config | {"quantization_config": fp8}).vision
    assert kept is not None
    assert narrow is not None
    assert kept.inventory.stored_bytes == 1_152_776_672 > narrow.inventory.stored_bytes
