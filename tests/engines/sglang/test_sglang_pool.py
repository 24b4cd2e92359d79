"""Budgets, cells, pools and caps against figures that the engine's own pool sizing produced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enginemem.engines.sglang.budget import multimodal_gib
from enginemem.engines.sglang.layout import kv_cell, stage_layers, state_slots
from enginemem.engines.sglang.model import ModelFacts, facts_from_config
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.pool import PoolProblem, plain_tokens, request_cap, size_pool, table_bytes
from enginemem.engines.sglang.resolve import configuration
from enginemem.release import load_release

RELEASE = load_release("sglang")
VECTORS = Path(__file__).parents[2] / "vectors" / "sglang"
POOLS = json.loads((VECTORS / "pool.json").read_text())["cases"]
MODELS = json.loads((VECTORS / "models.json").read_text())


def facts(name: str) -> ModelFacts:
    return facts_from_config(MODELS[name], hybrid_classes=RELEASE.values["hybrid_window_classes"])


def sized(case: dict[str, Any], **changes: Any) -> Any:
    case = {**case, **changes}
    options = Options.from_flags(case["flags"])
    major, minor = case["compute_capability"]
    model = facts(case["model"])
    config = configuration(RELEASE, model, options, mib=case["nvidia_smi_mib"], capability=(major, minor))
    before, after = case["pre_load_free_gib"], case["post_load_free_gib"]
    return size_pool(RELEASE, model, options, config, before=before, after=after, capability=(major, minor))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in POOLS])
def test_the_pool_is_the_engines(case: dict[str, Any]) -> None:
    got = sized(case)
    assert {name: getattr(got, name) for name in case["expect"]} == case["expect"]


def case_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(case for case in POOLS if case["id"] == name)
    return found


def test_a_token_limit_is_cut_to_whole_pages_and_never_raises_the_pool() -> None:
    assert plain_tokens(1000 * 64, cell=64, page=16) == 992
    assert plain_tokens(1000 * 64, cell=64, page=16, limit=100) == 96
    assert plain_tokens(1000 * 64, cell=64, page=16, limit=5000) == 992


def test_the_request_cap_follows_the_pool_between_its_bounds() -> None:
    # 824,883 / 131,072 x 512 = 3,222.2
    assert request_cap(RELEASE, tokens=824883, context=131072, requested=None) == 3222
    assert request_cap(RELEASE, tokens=412441, context=131072, requested=None) == 2048
    assert request_cap(RELEASE, tokens=4064446, context=131072, requested=None) == 4096
    assert request_cap(RELEASE, tokens=3000, context=131072, requested=None) == 1500
    assert request_cap(RELEASE, tokens=412441, context=131072, requested=256, attention_dp=4) == 64


def test_the_request_table_has_a_padding_row() -> None:
    assert table_bytes(RELEASE, requests=2048, context=131072) == 2049 * 131076 * 4


def test_kv_heads_are_replicated_beyond_their_number() -> None:
    def cell(tp: int) -> int:
        model = facts("qwen2.5-vl-7b")
        options = Options(tp_size=tp)
        return kv_cell(RELEASE, model, options, kv_cache_dtype="auto", element_bytes=2, major=9).full

    assert cell(4) == cell(8) == 28 * 1 * (128 + 128) * 2


def test_latent_rows_are_not_divided_by_tensor_parallelism() -> None:
    model = facts("deepseek-v3")
    cell = kv_cell(RELEASE, model, Options(tp_size=8), kv_cache_dtype="auto", element_bytes=2, major=9)
    assert cell.full == 576 * 61 * 2


@pytest.mark.parametrize(("major", "row"), [(9, 656 + 132), (10, 576 + 132)])
def test_fp8_rows_of_sparse_attention_carry_scales_on_hopper_only(major: int, row: int) -> None:
    model = facts("deepseek-v3.2")
    cell = kv_cell(RELEASE, model, Options(tp_size=8), kv_cache_dtype="fp8_e4m3", element_bytes=1, major=major)
    assert cell.full == row * 61


def test_the_largest_pipeline_stage_prices_the_pool() -> None:
    assert (stage_layers(32, pp=2), stage_layers(61, pp=2)) == (16, 31)


@pytest.mark.parametrize(
    ("strategy", "overlap", "slots"),
    [("extra_buffer", True, 5), ("extra_buffer", False, 4), ("extra_buffer_lazy", True, 4), ("no_buffer", False, 3)],
)
def test_state_slots_of_a_request(strategy: str, overlap: bool, slots: int) -> None:
    assert state_slots(RELEASE, radix_cache=True, strategy=strategy, overlap=overlap) == slots
    assert state_slots(RELEASE, radix_cache=False, strategy=strategy, overlap=overlap) == 1


def test_a_fixed_number_of_states_leaves_the_rest_to_keys_and_values() -> None:
    case = case_of("pool-0019")
    got = sized(case, flags={**case["flags"], "max-mamba-cache-size": 500})
    assert (got.max_mamba_cache_size, got.max_running_requests) == (500, 100)
    # less by the states, each 19,316,736 B, one slot of padding among them
    fewer = (698 - 500) * 19316736
    assert abs(got.kv_budget_bytes - case["expect"]["kv_budget_bytes"] - fewer) <= 1


def test_gpu_transports_of_images_are_set_aside_from_the_pool() -> None:
    assert multimodal_gib(RELEASE, multimodal=True, transport="cpu") == 100 / 1024
    assert multimodal_gib(RELEASE, multimodal=True, transport="cuda_ipc") == 1124 / 1024
    assert multimodal_gib(RELEASE, multimodal=False, transport="cuda_ipc") == 0


def test_a_window_pool_too_small_for_one_request_is_an_error() -> None:
    case = case_of("pool-0011")
    got = sized(case, flags={"swa-full-tokens-ratio": 0.00005})
    assert isinstance(got, PoolProblem)
    assert got.error == "window_pool_too_small"


def test_a_pool_below_one_token_is_an_error() -> None:
    case = case_of("pool-0001")
    slack = case["pre_load_free_gib"] * (1 - 0.83)
    got = sized(case, post_load_free_gib=slack + 1e-6)
    assert isinstance(got, PoolProblem)
    assert got.error == "pool_too_small"
