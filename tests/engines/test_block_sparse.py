"""MiniMax M3 under a class that the engines register: an index key a token beside keys and values in 57 of 60 layers.

The figures of VLLM are the engine's own: `get_kv_cache_configs` and `get_kv_cache_capacity` of the 0.32.0 wheel
(vllm/v1/core/kv_cache_utils.py), run in CPython with stand-ins for torch and the configuration on the specs that
models/minimax_m3 returns, in blocks of 128 tokens; the same in layouts LBNHC and BLHNC.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from enginemem import Architecture, Comparison, Scenario, compare
from enginemem.engines.vllm.compressed import compressed_sizes
from enginemem.engines.vllm.costs import KvLayout, kv_layout
from enginemem.engines.vllm.pool import sized
from enginemem.release import load_release
from public_configs import CONFIGS

MODEL = Architecture.from_hf_config(
    {**CONFIGS["MiniMaxAI--MiniMax-M3"], "architectures": ["MiniMaxM3SparseForCausalLM"]}
)

# (tp, KV type, bytes) -> (blocks, tokens in the log at 1,048,576, bytes of a block).
VLLM = [
    ((8, "bf16", 66_268_010_496), (11_425, 1_462_400, 5_799_936)),
    ((4, "bf16", 66_268_010_496), (11_425, 1_462_400, 5_799_936)),
    ((8, "fp8", 66_268_010_496), (17_284, 2_212_352, 3_833_856)),
]


@pytest.mark.parametrize(("given", "expected"), VLLM)
def test_vllm_keeps_index_keys_in_the_one_group(given: tuple[int, str, int], expected: tuple[int, int, int]) -> None:
    tp, dtype, memory = given
    sizes = compressed_sizes(load_release("vllm"))
    found = kv_layout(MODEL, tp=tp, dtype=dtype, block_size=128, sizes=sizes)
    assert isinstance(found, KvLayout)
    got = sized(
        found.groups, num_blocks=memory // found.block_bytes, block_bytes=[found.block_bytes],
        max_model_len=1_048_576, in_flight=16_384,
    )  # fmt: skip
    assert (got.num_blocks, got.kv_tokens_logged, got.bytes_per_block) == expected
    assert len(found.groups) == 1


def plans(gpu: str = "b200", **inputs: str) -> Comparison:
    return compare(Scenario(gpu=gpu, tp=8, **inputs).with_model(MODEL))


def test_both_engines_take_pages_of_one_sparse_block() -> None:
    # One of four KV heads on each GPU, K and V of 128, 16 bits; index keys of 128 are whole on every GPU.
    token = 60 * 2 * 128 * 2 + 57 * 128 * 2
    for engine in ("vllm", "sglang"):
        plan = plans().engines[engine]
        assert (plan.status, plan.page_tokens, plan.kv_bytes_per_token) == ("ok", 128, token), engine
    assert plans().engines["sglang"].resolved["attention_backend"].value == "fa4"
    assert plans("h200-sxm").engines["sglang"].resolved["attention_backend"].value == "fa3"


def test_an_fp8_cache_narrows_the_index_keys_only_where_attention_runs_in_fp8() -> None:
    narrow, wide = 60 * 2 * 128 + 57 * 128, 60 * 2 * 128 + 57 * 128 * 2
    blackwell, hopper = plans(kv_dtype="fp8").engines, plans("h200-sxm", kv_dtype="fp8").engines
    assert blackwell["sglang"].kv_bytes_per_token == narrow
    assert blackwell["sglang"].resolved["attention_backend"].value == "trtllm_mha"
    assert hopper["sglang"].kv_bytes_per_token == wide
    assert Fraction(hopper["vllm"].kv_bytes_per_token or 0) == blackwell["vllm"].kv_bytes_per_token == wide


def test_what_is_not_known_is_said() -> None:
    assert "compute capability 12.0" in (plans("rtx-pro-6000-server").engines["sglang"].reason or "")
    assert plans(kv_dtype="nvfp4").engines["vllm"].status == "not_modeled"
    assert plans(**{"vllm.block_size": "64"}).engines["vllm"].status == "refused"
    assert "indexer's keys" in (plans().engines["tensorrt-llm"].reason or "")
