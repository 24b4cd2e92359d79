"""Bytes that a long request takes a token, and bytes that it holds whatever its length: by family, in every engine.

All figures are for one GPU and a 16-bit cache, derived by hand from the shapes of the models.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from enginemem import Scenario, compare
from enginemem.engines.plan import EnginePlan
from enginemem.engines.vllm.layout import KvRow
from enginemem.engines.vllm.parameters import parameters

SPACIOUS = {"gpu": "h200-sxm", "cuda_total": "8TB", "smi_total": "8TB"}
"""A part that holds every model whole."""

NOTHING = {"vllm": 0, "sglang": 0, "tensorrt-llm": 0}

GPT_OSS_LAYER = 2 * 8 * 64 * 2
SCOUT_LAYER = 2 * 8 * 128 * 2
NANO_LAYER = 2 * 2 * 128 * 2
NANO_CONVOLUTION, NANO_STATE = 3 * (64 * 64 + 2 * 8 * 128), 64 * 64 * 128

FAMILIES: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    # Dense: 32 layers of 8 heads of 128, K and V.
    "llama-3.1-8b": (dict.fromkeys(NOTHING, 32 * 2 * 8 * 128 * 2), NOTHING),
    # Latent: one row of 576 in each of 61 layers.
    "deepseek-v3": (dict.fromkeys(NOTHING, 61 * 576 * 2), NOTHING),
    # 12 full layers and 12 of window 128. vLLM: 9 blocks of 16 tokens; SGLang: the prompt's last window, that of the
    # outputs, 128 tokens that wait for eviction and a page of one token; TensorRT-LLM: all layers at full length.
    "gpt-oss-20b": (
        {"vllm": 12 * GPT_OSS_LAYER, "sglang": 12 * GPT_OSS_LAYER, "tensorrt-llm": 24 * GPT_OSS_LAYER},
        {"vllm": 9 * 16 * 12 * GPT_OSS_LAYER, "sglang": (128 + 128 + 128 + 1) * 12 * GPT_OSS_LAYER, "tensorrt-llm": 0},
    ),
    # 12 full layers and 36 of chunk 8,192. vLLM: three groups of 12 layers, each a chunk; SGLang: windows of the chunk.
    "llama-4-scout": (
        {"vllm": 12 * SCOUT_LAYER, "sglang": 12 * SCOUT_LAYER, "tensorrt-llm": 48 * SCOUT_LAYER},
        {"vllm": 3 * 8192 * 12 * SCOUT_LAYER, "sglang": (2 * 8192 + 128 + 1) * 36 * SCOUT_LAYER, "tensorrt-llm": 0},
    ),
    # 6 attention and 23 Mamba-2 layers. vLLM: a state is padded to a page of 2,096 tokens, in four groups of six pages;
    # SGLang: five slots, the recurrence in 32 bits; TensorRT-LLM: one slot in 16 bits.
    "nemotron-3-nano": (
        dict.fromkeys(NOTHING, 6 * NANO_LAYER),
        {
            "vllm": 4 * 6 * 2096 * NANO_LAYER,
            "sglang": 5 * 23 * (NANO_CONVOLUTION * 2 + NANO_STATE * 4),
            "tensorrt-llm": 23 * (NANO_CONVOLUTION + NANO_STATE) * 2,
        },
    ),
}


def plans(model: str) -> dict[str, EnginePlan]:
    return dict(compare(Scenario(**SPACIOUS, model=model)).engines)


@pytest.mark.parametrize("model", FAMILIES)
def test_what_a_long_request_takes_a_token_and_besides(model: str) -> None:
    per_token, per_request = FAMILIES[model]
    for engine, plan in plans(model).items():
        found = (plan.kv_bytes_per_token, plan.kv_fixed_bytes_per_request)
        assert found == (per_token[engine], per_request[engine]), engine


@pytest.mark.parametrize("model", FAMILIES)
def test_both_stand_in_every_ledger_with_a_source(model: str) -> None:
    for engine, plan in plans(model).items():
        steps = {step.id: step for step in plan.steps}
        for name, value in (
            ("per_token", plan.kv_bytes_per_token),
            ("per_request", plan.kv_fixed_bytes_per_request),
        ):
            step = steps[f"{engine}.layout.{name}"]
            assert (step.value, step.unit) == (value, "bytes")
            assert step.sources


def test_a_group_of_fewer_layers_costs_a_block_of_the_widest() -> None:
    # Five full layers beside groups of six: blocks of 16 tokens and six layers of 100 bytes.
    block = 16 * 6 * 100
    found = parameters({KvRow("full", 16): 1, KvRow("sliding", 32, window=100): 2}, block_bytes=block)
    # 100 tokens that begin anywhere lie in five blocks of 32 at most.
    assert found == (600, 2 * 5 * block)
    assert parameters({KvRow("full", 48): 1}, block_bytes=1000).per_token == Fraction(125, 6)


def test_window_layers_alone_never_grow() -> None:
    assert parameters({KvRow("sliding", 16, window=1024): 1}, block_bytes=1600) == (0, 65 * 1600)
