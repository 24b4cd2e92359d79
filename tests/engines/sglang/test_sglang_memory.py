"""Reserve, fraction, graphs, backends and pages against figures that the engine's own argument resolution produced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enginemem.engines.sglang.dispatch import (
    captured_decode_graphs,
    decode_graph_sizes,
    graph_note,
    prefill_graph_sizes,
)
from enginemem.engines.sglang.model import ModelFacts, facts_from_config
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.reserve import capacity_defaults
from enginemem.engines.sglang.resolve import Configuration, configuration
from enginemem.release import load_release

RELEASE = load_release("sglang")
VECTORS = Path(__file__).parents[2] / "vectors" / "sglang"
LLAMA = ModelFacts("LlamaForCausalLM", full_layers=32, context=131072, kv_heads=8, head=128, v_head=128)
H100, HOPPER = 81559, (9, 0)


def cases(name: str) -> list[Any]:
    document = json.loads((VECTORS / f"{name}.json").read_text())
    return [pytest.param(case, id=case["id"]) for case in document["cases"]]


def facts(name: str) -> ModelFacts:
    config = json.loads((VECTORS / "models.json").read_text())[name]
    return facts_from_config(config, hybrid_classes=RELEASE.values["hybrid_window_classes"])


@pytest.mark.parametrize("case", cases("memory_defaults") + cases("memory_variants"))
def test_the_resolved_configuration_is_the_engines(case: dict[str, Any]) -> None:
    options = Options.from_flags({"tp-size": case.get("tp", 1), **case.get("flags", {})})
    major, minor = case["compute_capability"]
    got = configuration(RELEASE, facts(case["model"]), options, mib=case["nvidia_smi_mib"], capability=(major, minor))
    assert {name: getattr(got, name) for name in case["expect"]} == case["expect"]


def resolved(**flags: Any) -> Configuration:
    options = Options.from_flags({name.replace("_", "-"): value for name, value in flags.items()})
    return configuration(RELEASE, LLAMA, options, mib=H100, capability=HOPPER)


def test_the_reserve_of_the_published_page() -> None:
    # 512 + 1.5 x 8192 + 1/8 x 1024 + 2 x 256 + 8 x 58 = 13,904; 67,655 / 81,559 = 0.82952 -> 0.830
    got = resolved()
    assert got.reserve_mib == 512 + 1.5 * 8192 + 128 + 512 + 464 == 13904
    assert got.mem_fraction_static == 0.83


@pytest.mark.parametrize(
    ("limit", "count"), [(1024, 38), (2048, 42), (4096, 50), (8192, 58), (16384, 74), (0, 0), (-1, 0)]
)
def test_number_of_prefill_graphs(limit: int, count: int) -> None:
    assert len(prefill_graph_sizes(RELEASE, limit)) == count


@pytest.mark.parametrize(("limit", "count"), [(8, 4), (32, 8), (48, 10), (160, 24), (256, 36), (512, 52)])
def test_number_of_decode_graphs(limit: int, count: int) -> None:
    sizes = decode_graph_sizes(RELEASE, limit)
    assert (len(sizes), sizes[-1]) == (count, limit)


def test_a_largest_decode_graph_beside_the_ranges_is_appended() -> None:
    assert decode_graph_sizes(RELEASE, 33) == (1, 2, 4, 8, 12, 16, 24, 32, 33)
    assert decode_graph_sizes(RELEASE, 3, padding=False) == (1, 2, 3)


def test_the_request_table_cuts_the_largest_decode_graph() -> None:
    assert captured_decode_graphs(256, request_cap=100, running=90) == (100, 90)
    assert captured_decode_graphs(256, request_cap=2048, running=257).replayed is None


def test_one_request_is_one_request() -> None:
    graphs = captured_decode_graphs(256, request_cap=2048, running=1, sizes=(1, 2, 4))
    text = graph_note(graphs, running=1, prefill_graphs=False, prefill_largest=0)
    assert text.startswith("A decode step of 1 request replays")


def test_a_batch_is_padded_to_the_next_captured_size() -> None:
    sizes = decode_graph_sizes(RELEASE, 256)
    assert captured_decode_graphs(256, request_cap=2048, running=121, sizes=sizes).replayed == 128


@pytest.mark.parametrize(("mib", "chunk"), [(20 * 1024 - 1, 2048), (20 * 1024, 4096), (160 * 1024, 16384)])
def test_lower_bounds_of_the_capacity_classes_are_inclusive(mib: int, chunk: int) -> None:
    assert capacity_defaults(RELEASE, mib, tp=1).chunked_prefill_size == chunk


def test_an_unreadable_capacity_has_defaults_of_its_own() -> None:
    assert capacity_defaults(RELEASE, None, tp=1) == (4096, 160)
    got = configuration(RELEASE, LLAMA, Options(), mib=None, capability=HOPPER)
    assert got.mem_fraction_static == 0.95


def test_a_users_fraction_replaces_the_reserve() -> None:
    got = resolved(mem_fraction_static=0.9)
    assert (got.mem_fraction_static, got.reserve_mib) == (0.9, None)


def test_a_request_cap_lowers_the_largest_decode_graph_but_never_raises_it() -> None:
    assert resolved(max_running_requests=16).decode_graph_max_bs == 16
    assert resolved(max_running_requests=4096).decode_graph_max_bs == 256


def test_speculation_caps_requests_only_where_no_cap_is_set() -> None:
    assert resolved(speculative_algorithm="NGRAM").max_running_requests == 48
    assert resolved(speculative_algorithm="NGRAM", max_running_requests=100).max_running_requests == 100
    assert resolved(speculative_algorithm="UNO").max_running_requests is None


def test_deepep_aligns_prefill_graphs_and_adds_its_buffers_after_the_floor() -> None:
    got = resolved(moe_a2a_backend="deepep", tp_size=8)
    # sizes up to 2,048, rounded up to multiples of 8: 42 less the four that fall together (4/8, 12/16, 20/24, 28/32)
    assert (got.prefill_graph_max_tokens, got.prefill_graph_count) == (2048, 38)
    assert got.reserve is not None
    assert got.reserve.graphs.prefill == 38 * 8 + 1024
    assert got.reserve.deepep == 2048
    assert resolved(moe_a2a_backend="deepep", deepep_mode="normal").decode_graph_backend == "disabled"


def test_unvalidated_all_to_all_backends_turn_prefill_graphs_off() -> None:
    assert resolved(moe_a2a_backend="mooncake").prefill_graph_backend == "disabled"
    assert resolved(moe_a2a_backend="megamoe").prefill_graph_backend == "breakable"


def test_attention_data_parallelism_divides_the_chunk_after_the_reserve() -> None:
    got = resolved(tp_size=4, attn_dp_size=4)
    assert (got.chunked_prefill_size, got.activation_tokens) == (2048, 8192)
    assert got.schedule_conservativeness == 0.3
    assert resolved(tp_size=4, dp_size=4, enable_dp_attention=True) == got


@pytest.mark.parametrize(("backend", "asked", "page"), [("trtllm_mha", 1, 64), ("trtllm_mha", 16, 16), ("fa3", 16, 16)])
def test_backends_replace_pages_that_they_cannot_read(backend: str, asked: int, page: int) -> None:
    assert resolved(attention_backend=backend, page_size=asked).page_size == page


def test_hybrid_models_on_blackwell_page_when_the_prefix_cache_is_off() -> None:
    model = facts("qwen3-next-80b")
    off = Options.from_flags({"tp-size": 4, "disable-radix-cache": True})
    got = configuration(RELEASE, model, off, mib=183359, capability=(10, 0))
    assert (got.attention_backend, got.page_size) == ("trtllm_mha", 64)
    plain = configuration(RELEASE, model, Options(tp_size=4), mib=183359, capability=(10, 0))
    assert (plain.attention_backend, plain.page_size) == ("triton", 1)


def test_without_overlap_recurrent_state_is_kept_without_extra_buffer() -> None:
    options = Options(tp_size=4, disable_overlap_schedule=True)
    got = configuration(RELEASE, facts("qwen3-next-80b"), options, mib=H100, capability=HOPPER)
    assert (got.mamba_radix_cache_strategy, got.disable_overlap_schedule) == ("no_buffer", True)


def test_a_users_schedule_policy_is_kept() -> None:
    assert resolved().schedule_policy == "fcfs"
    assert resolved(schedule_policy="lpm").schedule_policy == "lpm"


def test_sparse_latent_caches_have_one_name_for_bfloat16() -> None:
    options = Options.from_flags({"kv-cache-dtype": "bf16"})
    got = configuration(RELEASE, facts("deepseek-v3.2"), options, mib=H100, capability=HOPPER)
    assert got.kv_cache_dtype == "bfloat16"


def test_unknown_flags_are_refused() -> None:
    with pytest.raises(KeyError):
        Options.from_flags({"no-such-flag": 1})
