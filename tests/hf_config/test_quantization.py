"""The formats of a checkpoint by module: names as public files write them, and what counts first."""

from collections.abc import Mapping
from typing import Any

import pytest

from enginemem import Architecture, InvalidInputs
from enginemem.tensors import counted
from public_configs import CONFIGS

FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
BLOCKS = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}
ROWS = {"num_bits": 8, "type": "float", "strategy": "channel"}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}
DENSE, MOE = CONFIGS["Qwen--Qwen3-8B"], CONFIGS["Qwen--Qwen3-30B-A3B"]


def forms(config: Mapping[str, Any], quantization: Any, extra: Any = None) -> dict[str, set[str]]:
    """The names of the matrices' formats by the last parts of their names."""
    whole = dict(config) | ({} if quantization is None else {"quantization_config": quantization})
    found: dict[str, set[str]] = {}
    for _, tensor in counted(Architecture.from_hf_config(whole, hf_quant_config=extra).inventory):
        if tensor.columns > 1:
            found.setdefault(tensor.name.rpartition(".")[2], set()).add(tensor.form.name)
    return found


def compressed(*groups: Any, **others: Any) -> dict[str, Any]:
    return {
        "quant_method": "compressed-tensors",
        "format": "mixed-precision",
        "ignore": ["lm_head"],
        "config_groups": {f"group_{index}": group for index, group in enumerate(groups)},
    } | others


def test_a_compression_config_counts_where_there_is_no_other() -> None:
    old = compressed({"targets": ["Linear"], "weights": ROWS})
    assert forms(DENSE | {"compression_config": old}, None)["q_proj"] == {"fp8_rows"}
    assert forms(DENSE | {"compression_config": old}, FP8)["q_proj"] == {"fp8_block"}


def test_a_method_is_read_in_any_case_and_spelling() -> None:
    old = compressed({"targets": ["Linear"], "weights": ROWS}, quant_method="Compressed_Tensors")
    assert forms(DENSE, old)["q_proj"] == {"fp8_rows"}


def test_a_modules_name_counts_before_the_class_of_its_layer() -> None:
    first = {"targets": ["Linear"], "weights": BLOCKS}
    second = {"targets": ["re:.*mlp\\.experts.*"], "weights": INT4}
    assert forms(MOE, compressed(first, second)) == forms(MOE, compressed(second, first))
    found = forms(MOE, compressed(first, second))
    assert (found["q_proj"], found["down_proj"], found["lm_head"]) == ({"fp8_block"}, {"int4"}, {"bf16"})


def test_experts_have_the_names_of_mixtral_and_minimax_too() -> None:
    first = {"targets": ["Linear"], "weights": BLOCKS}
    second = {"targets": ["re:.*block_sparse_moe\\.experts.*"], "weights": INT4}
    assert forms(CONFIGS["MiniMaxAI--MiniMax-M2.5"], compressed(first, second))["down_proj"] == {"int4"}
    dense = forms(DENSE, compressed(first, {"targets": ["re:.*block_sparse_moe.*"], "weights": INT4}))
    assert dense["down_proj"] == {"fp8_block"}


def test_matrices_that_a_checkpoint_keeps_as_one_are_named_as_one() -> None:
    left = ["lm_head", *[f"model.layers.{index}.self_attn.qkv_proj" for index in range(40)]]
    found = forms(CONFIGS["microsoft--phi-4"], FP8 | {"modules_to_not_convert": left})
    assert found["q_proj"] == found["v_proj"] == {"bf16"}
    assert found["o_proj"] == found["gate_proj"] == {"fp8_block"}


def test_qwen3_nexts_small_projections_are_named_as_one() -> None:
    config = CONFIGS["Qwen--Qwen3.5-35B-A3B"]
    layers = config["text_config"]["num_hidden_layers"]
    left = [f"model.language_model.layers.{index}.linear_attn.in_proj_ba" for index in range(layers)]
    found = forms(config, FP8 | {"modules_to_not_convert": left})
    assert found["in_proj_a"] == found["in_proj_b"] == {"bf16"}
    assert found["in_proj_qkv"] == {"fp8_block"}


def test_nemotrons_names_start_with_backbone() -> None:
    config = CONFIGS["nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"]
    at = config["hybrid_override_pattern"].index("*")
    for name in (f"backbone.layers.{at}.mixer*", f"backbone.layers.{at}*", f"backbone.layers.{at}.mixer.q_proj"):
        left = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head", name]}}
        assert forms(config, None, left)["q_proj"] == {"bf16", "fp8"}, name


def test_expressions_match_a_multimodal_models_whole_names() -> None:
    config = CONFIGS["Qwen--Qwen3-VL-8B-Instruct"]
    group = {"targets": ["Linear"], "weights": ROWS}
    found = forms(config, compressed(group, ignore=["lm_head", "re:model\\.language_model\\.layers\\.0\\..*"]))
    assert found["q_proj"] == {"bf16", "fp8_rows"}


def test_gptq_leaves_alone_and_changes_what_dynamic_says() -> None:
    changes = {"-:.*self_attn.*": {}, "+:.*\\.1[0-9]\\..*": {"bits": 8}, ".*\\.2\\.mlp.*": {"group_size": 32}}
    found = forms(MOE, GPTQ | {"dynamic": changes})
    assert found["q_proj"] == found["gate"] == found["lm_head"] == {"bf16"}
    assert found["down_proj"] == {"int4", "int8"}


def test_gptq_stores_the_head_and_the_listed_modules_alone() -> None:
    found = forms(DENSE, GPTQ | {"lm_head": True, "modules_in_block_to_quantize": [["mlp.up_proj"], "mlp.down_proj"]})
    assert found["lm_head"] == found["up_proj"] == found["down_proj"] == {"int4"}
    assert found["q_proj"] == found["gate_proj"] == found["embed_tokens"] == {"bf16"}


def test_encoders_of_awq_checkpoints_stay_as_they_are() -> None:
    config = CONFIGS["Qwen--Qwen3-VL-8B-Instruct"]
    awq = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
    plain, narrow = [Architecture.from_hf_config(config | more) for more in ({}, {"quantization_config": awq})]
    assert plain.vision is not None
    assert narrow.vision is not None
    assert plain.vision.inventory == narrow.vision.inventory


def test_eight_bits_in_groups_are_mxfp8_or_refused() -> None:
    small = {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32}
    assert forms(DENSE, compressed({"targets": ["Linear"], "weights": small}))["q_proj"] == {"mxfp8"}
    with pytest.raises(InvalidInputs) as caught:
        forms(DENSE, compressed({"targets": ["Linear"], "weights": small | {"group_size": 128}}))
    (error,) = caught.value.errors
    assert error.field == "config.quantization_config.config_groups.group_0.weights.group_size"


@pytest.mark.parametrize(
    ("others", "field"),
    [
        ({"format": "marlin-24"}, "format"),
        ({"sparsity_config": {"format": "sparse-24-bitmask", "targets": ["Linear"]}}, "sparsity_config.format"),
    ],
)
def test_sparse_matrices_are_refused_by_name(others: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputs) as caught:
        forms(DENSE, compressed({"targets": ["Linear"], "weights": ROWS}, **others))
    assert [error.field for error in caught.value.errors] == [f"config.quantization_config.{field}"]


def test_a_dense_sparsity_config_says_nothing() -> None:
    dense = compressed({"targets": ["Linear"], "weights": ROWS}, sparsity_config={"format": "dense"})
    assert forms(DENSE, dense)["q_proj"] == {"fp8_rows"}
