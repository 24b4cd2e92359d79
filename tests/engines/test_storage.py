"""What a checkpoint stores and a cut over GPUs: parts that do not end at a scale, and whole numbers no class takes."""

from typing import Any

import pytest

from enginemem import Architecture, Scenario, compare
from enginemem.engines.plan import EnginePlan
from public_configs import CONFIGS

MOE, DENSE = CONFIGS["Qwen--Qwen3-30B-A3B-FP8"], CONFIGS["Qwen--Qwen3-8B"]
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
WEIGHTS = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128], "symmetric": True}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": WEIGHTS}},
}


def plans(config: Any, tp: int = 1) -> dict[str, EnginePlan]:
    """The plans of a configuration on H200s."""
    return dict(compare(Scenario(gpu="h200-sxm", tp=tp).with_model(Architecture.from_hf_config(config))).engines)


def refusals(config: Any, tp: int = 1) -> dict[str, str]:
    """The reasons of the engines that refuse a configuration."""
    return {engine: plan.reason or "" for engine, plan in plans(config, tp).items() if plan.status == "refused"}


def test_experts_scales_are_spread_to_smaller_blocks_by_vllm_and_refused_by_sglang() -> None:
    reason = "the 96 features of mlp.experts.0.gate_proj on one of 8 GPUs are no multiple of the 128 under one scale"
    assert refusals(MOE, 8) == {"sglang": reason}
    ends = Architecture.from_hf_config(MOE | {"moe_intermediate_size": 1_024})
    assert ends.tensor_parallel_problem(8) is None
    # 768 features of 2,048 on 8 GPUs are 96: one scale for 32 by 32 elements, in 48 layers of 128 experts of 3 matrices.
    scales = 48 * 128 * 3 * (96 // 32) * (2_048 // 32) * 4
    elements = 48 * 128 * 3 * 96 * 2_048
    attention = 48 * (2 * 4 * 128 * 2_048 + 2 * 128 * 2_048)
    steps = {step.id: step for step in plans(MOE, 8)["vllm"].steps}
    linear = steps["vllm.weights.linear"].value
    assert isinstance(linear, int)
    assert elements + attention + scales < linear < elements + attention + scales + 48 * 20_000


def test_experts_that_no_block_of_32_fits_are_refused_by_both() -> None:
    odd = MOE | {"moe_intermediate_size": 736}
    assert set(refusals(odd, 1)) == {"sglang"}
    assert set(refusals(odd, 2)) == {"vllm", "sglang"}


def test_experts_of_compressed_blocks_are_refused_by_both() -> None:
    reasons = refusals(MOE | {"quantization_config": COMPRESSED}, 8)
    assert set(reasons) == {"vllm", "sglang"}


@pytest.mark.parametrize(("quantization", "engines"), [(FP8, {"sglang"}), (COMPRESSED, {"vllm", "sglang"})])
def test_merged_matrices_end_at_a_block_on_one_gpu_too(quantization: Any, engines: set[str]) -> None:
    reasons = refusals(DENSE | {"intermediate_size": 10_944, "quantization_config": quantization})
    assert set(reasons) == engines
    assert all("the 10,944 features of mlp.gate_proj on one GPU" in reason for reason in reasons.values())


def test_a_narrow_kv_head_does_not_end_at_a_block() -> None:
    # Eight KV heads of 64 elements: one on each of eight GPUs.
    config = CONFIGS["meta-llama--Llama-3.2-1B-Instruct"] | {"quantization_config": FP8}
    assert refusals(config, 4) == {}
    reasons = refusals(config, 8)
    assert set(reasons) == {"sglang"}
    assert "the 64 features of self_attn.k_proj on one of 8 GPUs" in reasons["sglang"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"bits": 3}, "self_attn.q_proj has 3 bits; its class of gptq takes 4 and 8"),
        ({"sym": False}, "self_attn.q_proj has zero points; its class of gptq takes symmetric whole numbers alone"),
        ({"quant_method": "awq", "bits": 8}, "self_attn.q_proj has 8 bits; its class of awq takes 4"),
    ],
)
def test_whole_numbers_that_no_class_of_vllm_takes_are_refused(changes: dict[str, Any], reason: str) -> None:
    stored = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True} | changes
    assert refusals(DENSE | {"quantization_config": stored}).get("vllm", "") == reason
