"""What layers take in a plan: KV heads over GPUs, element types, windows and chunks, latent rows."""

from __future__ import annotations

from fractions import Fraction

import pytest

from enginemem.architecture import LayerSpec
from enginemem.derivation import check_ids, evaluate
from enginemem.engines import vllm
from enginemem.engines.plan import EnginePlan, Sensitivity
from enginemem.release import load_release
from enginemem.scenario import Scenario

RELEASE = load_release("vllm")
GIVEN = {"vllm.kv_cache_memory_bytes": "40GB"}


def plan(**inputs: object) -> EnginePlan:
    return vllm.plan(Scenario(**inputs), RELEASE)


def test_kv_heads_are_split_then_replicated() -> None:
    # Qwen2.5 7B has 4 KV heads: two GPUs hold half each, four a quarter each.
    each = [plan(model="qwen2.5-7b", tp=tp, max_model_len=4096).kv_bytes_per_token for tp in ("1", "2", "4")]
    assert each == [2 * 28 * heads * 128 * 2 for heads in (4, 2, 1)]


def test_turing_falls_back_to_fp16_and_refuses_bf16() -> None:
    result = plan(gpu="t4", model="llama-3.2-1b", max_model_len=4096)
    assert result.status == "ok"
    notes = [step.note or "" for step in result.steps if step.id == "vllm.resolve.block_size"]
    assert "falls back to fp16" in notes[0]
    assert plan(gpu="t4", model="llama-3.2-1b", weight_dtype="bf16").status == "refused"
    assert plan(gpu="t4", model="llama-3.2-1b", kv_dtype="fp8").status == "refused"


def test_nvfp4_tokens_take_nine_sixteenths_of_fp8() -> None:
    fp8, nvfp4 = (plan(kv_dtype=kv).kv_bytes_per_token for kv in ("fp8", "nvfp4"))
    assert (fp8, nvfp4) == (65_536, 36_864)


def test_fp8_weights_leave_more_to_the_cache() -> None:
    wide, narrow = plan(), plan(weight_dtype="fp8")
    assert wide.kv_pool_bytes is not None
    assert narrow.kv_pool_bytes is not None
    assert narrow.kv_pool_bytes - wide.kv_pool_bytes == 6_979_321_856


WINDOWS = LayerSpec("sliding", 52, 16, 128, 128, window=1024)
WHOLE = LayerSpec("full", 10, 16, 128, 128)
CHUNKS = LayerSpec("chunked", 36, 8, 128, 128, chunk=8192)


def with_layers(*layers: LayerSpec, **inputs: object) -> EnginePlan:
    scenario = Scenario(**inputs)
    scenario.model = scenario.model._replace(layers=layers)
    result = vllm.plan(scenario, RELEASE)
    check_ids(result.steps)
    assert all(evaluate(step, vllm.RULES) == step.value for step in result.steps)
    assumption = int(scenario.runtime)
    got = vllm.at_assumption(scenario, RELEASE, result, assumption)
    assert got == Sensitivity(assumption, result.kv_pool_bytes, result.kv_tokens, result.running)
    return result


def test_groups_have_blocks_and_a_log_line_but_no_single_token_count() -> None:
    # The layers of vector kv-015: 6 sliding groups of 9 layers at most, 1 full group of 10.
    result = with_layers(WINDOWS, WHOLE, **GIVEN)
    assert (result.status, result.kv_tokens) == ("ok", None)
    assert (result.blocks, result.kv_tokens_logged) == (30_517, 271_623)
    # At 2,150 tokens a sliding group holds 1,040 tokens, the full one all: 30,517.6 blocks of 10 pages.
    held = 6 * Fraction(1040, 16) + Fraction(2150, 16)
    assert result.running == int(Fraction(40_000_000_000, 1_310_720) / held)
    assert result.running_steady is not None
    assert result.running_steady.regime == "memory"


def test_one_window_group_is_sized_by_its_window() -> None:
    result = with_layers(WINDOWS, **GIVEN)
    assert (result.status, result.kv_tokens) == ("ok", None)
    # A window of 1,024 tokens and the open block; nothing grows beyond it.
    assert result.kv_bytes_per_token == 0
    assert result.kv_fixed_bytes_per_request == 65 * 16 * 52 * 2 * 16 * 128 * 2


def test_chunked_layers_hold_a_chunk_at_most() -> None:
    layers = (CHUNKS, WHOLE._replace(layers=12, kv_heads=8))
    result = with_layers(*layers, **GIVEN)
    assert result.kv_tokens_logged == 520_826  # vector kv-026
    # A chunk that no request fills frees nothing, as if all layers kept the whole context.
    whole = with_layers(CHUNKS._replace(kind="full", chunk=None), layers[1], **GIVEN)
    short, long = result.running_steady, with_layers(*layers, prompt=20_000, **GIVEN).running_steady
    assert short is not None
    assert long is not None
    assert whole.running_steady is not None
    assert short.mean == pytest.approx(whole.running_steady.mean, rel=0.01)
    # Of 20,300 tokens on average, three groups hold those after the second chunk of 8,192 and one group holds all. The
    # next request enters with its whole prompt in four groups, so on average that less half of what it then holds is free.
    held = (20_300 + 3 * 3_916) / 16
    assert result.blocks is not None
    assert long.mean == pytest.approx((result.blocks - (4 * 1250 - held / 2)) / held, rel=0.02)


def test_latent_rows_are_whole_on_every_gpu_and_sparse_ones_bring_their_indexer() -> None:
    plain = with_layers(LayerSpec("mla", 61, 1, 576, 0), tp=8, model="llama-3.1-70b", **GIVEN)
    assert (plain.kv_bytes_per_token, plain.page_tokens) == (61 * 576 * 2, 16)
    sparse = with_layers(LayerSpec("mla", 61, 1, 576, 0, index_head=128), gpu="h200-sxm", **GIVEN)
    assert (sparse.kv_bytes_per_token, sparse.page_tokens) == (61 * (576 * 2 + 132), 64)


def test_sparse_latent_layers_wait_for_a_backend_on_old_parts() -> None:
    scenario = Scenario(gpu="a100-80-sxm")
    scenario.model = scenario.model._replace(layers=(LayerSpec("mla", 61, 1, 576, 0, index_head=128),))
    assert vllm.plan(scenario, RELEASE).status == "not_modeled"
