"""Families whose public configuration was not at hand: fixtures written from the classes' fields, against the size in
the models' names. Everything here is unverified, and the Architecture says so."""

from typing import Any

import pytest

from enginemem import Architecture

COMMON = {"dtype": "bfloat16", "max_position_embeddings": 131_072}
FIXTURES: dict[str, tuple[dict[str, Any], float]] = {
    "granite-4.0-h-small": (
        {
            "model_type": "granitemoehybrid",
            "hidden_size": 4096,
            "intermediate_size": 768,
            "shared_intermediate_size": 1536,
            "num_hidden_layers": 40,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 100_352,
            "num_local_experts": 72,
            "num_experts_per_tok": 10,
            "layer_types": ["attention" if index in (5, 15, 25, 35) else "mamba" for index in range(40)],
            "mamba_n_heads": 128,
            "mamba_d_head": 64,
            "mamba_d_state": 128,
            "mamba_n_groups": 1,
            "mamba_d_conv": 4,
            "position_embedding_type": "nope",
            "tie_word_embeddings": True,
        },
        32,
    ),
    "falcon-h1-34b": (
        {
            "model_type": "falcon_h1",
            "hidden_size": 5120,
            "intermediate_size": 21_504,
            "num_hidden_layers": 72,
            "num_attention_heads": 20,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "vocab_size": 261_120,
            "mamba_n_heads": 32,
            "mamba_d_head": 128,
            "mamba_d_ssm": 4096,
            "mamba_d_state": 256,
            "mamba_n_groups": 2,
            "mamba_d_conv": 4,
        },
        34,
    ),
    "jamba-1.5-mini": (
        {
            "model_type": "jamba",
            "hidden_size": 4096,
            "intermediate_size": 14_336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 65_536,
            "num_experts": 16,
            "num_experts_per_tok": 2,
            "attn_layer_period": 8,
            "attn_layer_offset": 4,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "mamba_d_state": 16,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "mamba_dt_rank": 256,
        },
        51.6,
    ),
    "kimi-linear-48b": (
        {
            "model_type": "kimi_linear",
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "moe_intermediate_size": 1024,
            "num_hidden_layers": 27,
            "num_attention_heads": 32,
            "vocab_size": 163_840,
            "kv_lora_rank": 512,
            "q_lora_rank": None,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "num_experts": 256,
            "num_experts_per_token": 8,
            "num_shared_experts": 1,
            "first_k_dense_replace": 1,
            "linear_attn_config": {
                "num_heads": 32,
                "head_dim": 128,
                "short_conv_kernel_size": 4,
                "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
                "kda_layers": [index for index in range(1, 28) if index not in (4, 8, 12, 16, 20, 24, 27)],
            },
        },
        49,
    ),
    "command-r-35b": (
        {
            "model_type": "cohere",
            "hidden_size": 8192,
            "intermediate_size": 22_528,
            "num_hidden_layers": 40,
            "num_attention_heads": 64,
            "num_key_value_heads": 64,
            "vocab_size": 256_000,
        },
        35,
    ),
    "smollm3-3b": (
        {
            "model_type": "smollm3",
            "hidden_size": 2048,
            "intermediate_size": 11_008,
            "num_hidden_layers": 36,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "vocab_size": 128_256,
        },
        3.08,
    ),
    "glm-4.5-air": (
        {
            "model_type": "glm4_moe",
            "hidden_size": 4096,
            "intermediate_size": 10_944,
            "moe_intermediate_size": 1408,
            "num_hidden_layers": 46,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151_552,
            "n_routed_experts": 128,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "attention_bias": True,
            "partial_rotary_factor": 0.5,
        },
        106,
    ),
}


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_the_fixture_has_the_size_in_the_models_name(name: str) -> None:
    config, billions = FIXTURES[name]
    model = Architecture.from_hf_config({**COMMON, **config})
    assert model.parameters / 1e9 == pytest.approx(billions, rel=0.02)
    assert any("unverified" in note for note in model.notes)


def test_falcon_caches_twice_in_every_layer() -> None:
    model = Architecture.from_hf_config({**COMMON, **FIXTURES["falcon-h1-34b"][0]})
    assert model.num_layers == 72
    assert sum(spec.layers for spec in model.layers) == 144


def test_kimi_linear_alternates_states_and_latent_rows() -> None:
    model = Architecture.from_hf_config({**COMMON, **FIXTURES["kimi-linear-48b"][0]})
    assert [(spec.kind, spec.layers) for spec in model.layers[:2]] == [("recurrent", 3), ("mla", 1)]
    assert sum(spec.layers for spec in model.layers if spec.kind == "mla") == 7
