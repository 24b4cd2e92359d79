"""The plan: published figures, what the engine does with unfortunate inputs, and the ledger."""

from __future__ import annotations

import random
import timeit
from fractions import Fraction

import pytest

from enginemem.architecture import LayerSpec
from enginemem.engines.plan import EnginePlan
from enginemem.engines.tensorrt_llm import at_assumption, plan
from enginemem.release import load_release
from enginemem.scenario import Scenario
from random_scenarios import random_scenario

RELEASE = load_release("tensorrt-llm")


def planned(**inputs: object) -> EnginePlan:
    return plan(Scenario(**inputs), RELEASE)


def knob(name: str, value: object, **inputs: object) -> EnginePlan:
    return planned(**{f"tensorrt-llm.{name}": value}, **inputs)


@pytest.mark.parametrize(
    ("inputs", "tokens", "blocks", "running"),
    [
        ({}, 452_896, 14_153, 113),
        ({"max_tokens": 300}, 452_896, 14_153, 196),
        ({"kv_dtype": "fp8"}, 905_792, 28_306, 226),
    ],
)
def test_published_worked_figures(inputs: dict[str, object], tokens: int, blocks: int, running: int) -> None:
    found = planned(**inputs)
    assert found.status == "ok"
    assert found.kv_pool_bytes == 59_362_519_615
    assert (found.kv_tokens, found.blocks, found.page_tokens) == (tokens, blocks, 32)
    assert (found.running, found.binds, found.step_token_budget) == (running, "kv_memory", 8192)
    assert (found.largest_decode_graph, found.in_graph) == (128, False)
    assert found.running_steady is not None
    assert found.running_steady[:3] == (running, running, running)
    assert found.running_steady.regime == "reserved"
    steps = {step.id: step.value for step in found.steps}
    assert steps["tensorrt-llm.budget.free"] == 65_958_355_128


def test_log_line_is_the_engines_own_text() -> None:
    expected = "[MemUsageChange] Allocated 55.29 GiB for max tokens in paged KV cache (452896)."
    assert planned().log_line == expected


def test_no_default_depends_on_the_memory_of_the_gpu() -> None:
    small, large = planned(gpu="rtx-3090", model="qwen3-0.6b"), planned(gpu="b200", model="qwen3-0.6b")
    assert small.status == large.status == "ok"
    assert small.resolved == large.resolved


def test_an_unknown_cuda_total_is_named_with_the_input_that_supplies_it() -> None:
    found = planned(gpu="gb300")
    assert found.status == "not_modeled"
    assert "give cuda_total" in (found.reason or "")
    assert planned(gpu="gb300", cuda_total="277GiB").status == "ok"


def test_states_that_leave_nothing_are_named_with_the_knob_that_shrinks_them() -> None:
    # 63.16 GB of weights and 3 GB fit; the states of 2,048 requests besides do not.
    found = planned(model="nemotron-3-nano")
    assert found.status == "does_not_fit"
    assert "recurrent states of" in (found.reason or "")
    assert "lower tensorrt-llm.max_batch_size" in (found.reason or "")
    assert knob("max_batch_size", 64, model="nemotron-3-nano").status == "ok"


@pytest.mark.parametrize(
    ("inputs", "word"),
    [
        ({"gpu": "mi300x"}, "NVIDIA"),
        ({"gpu": "t4", "model": "qwen3-0.6b"}, "Ampere"),
        ({"gpu": "a100-80-sxm", "weight_dtype": "fp8"}, "Ada"),
        ({"gpu": "h100-sxm", "kv_dtype": "nvfp4"}, "NVFP4"),
        ({"gpu": "rtx-5090", "kv_dtype": "nvfp4"}, "NVFP4"),
    ],
)
def test_unsupported_parts_and_types_are_not_modeled(inputs: dict[str, object], word: str) -> None:
    found = planned(**inputs)
    assert found.status == "not_modeled"
    assert word in (found.reason or "")
    assert found.running is None


def test_fp8_kv_cache_works_from_ampere_on() -> None:
    """The documentation's hardware matrix lists it for Ampere, before and after the tag."""
    assert planned(gpu="a100-80-sxm", kv_dtype="fp8").kv_bytes_per_token == 65_536


def test_weights_that_fill_the_gpu_do_not_fit() -> None:
    found = planned(model="llama-3.1-70b")
    assert (found.status, found.binds, found.running) == ("does_not_fit", "does_not_fit", None)
    assert "141.11 GB" in (found.reason or "")


def test_a_pool_below_one_block_does_not_fit() -> None:
    # 85,018,877,624 free of everything but one byte: not a block of 32 x 131,072 B.
    found = planned(runtime="68958355127B")
    assert found.status == "does_not_fit"
    assert "no block" in (found.reason or "")


def test_a_prompt_above_the_token_budget_is_refused_unless_chunked() -> None:
    found = planned(prompt=8193)
    assert (found.status, found.binds, found.running) == ("refused", "prompt_limit", None)
    assert "8,193" in (found.reason or "")
    assert found.kv_tokens == 452_896
    # 8,193 + 2,000 tokens reserve 319 blocks: 14,153 // 319 = 44.
    assert knob("enable_chunked_prefill", True, prompt=8193).running == 44
    assert planned(prompt=8192, max_tokens=300).status == "ok"


def test_a_prompt_without_room_for_an_output_token_is_refused() -> None:
    found = planned(prompt=4096, max_model_len=4096)
    assert (found.status, found.binds) == ("refused", "prompt_limit")
    assert "4,096" in (found.reason or "")


def test_chunks_larger_than_the_token_budget_start_no_prompt() -> None:
    found = planned(**{"tensorrt-llm.enable_chunked_prefill": True, "tensorrt-llm.max_num_tokens": 16})
    assert found.status == "refused"
    assert "no prompt ever starts" in (found.reason or "")


def test_outputs_are_clipped_to_the_room_that_the_prompt_leaves() -> None:
    found = planned(max_model_len=3000)
    steps = {step.id: step for step in found.steps}
    assert steps["tensorrt-llm.admission.output_limit"].value == 1000
    assert "Clipped" in (steps["tensorrt-llm.admission.output_limit"].note or "")
    # 3,000 tokens reserve 94 blocks: 14,153 // 94 = 150.
    assert found.running == 150


def test_a_longer_length_than_the_models_is_cut_with_a_warning() -> None:
    found = planned(max_model_len=1_000_000)
    assert found.resolved["max_seq_len"] == (131_072, "derived")
    step = next(step for step in found.steps if step.id == "tensorrt-llm.resolve.max_seq_len")
    assert "warning" in (step.note or "")


def test_a_small_pool_shortens_the_longest_sequence() -> None:
    # 1 GB free: 900,000,000 B // 131,072 = 6,866 tokens, 214 blocks, 6,848 tokens.
    found = planned(runtime="67958355124B", prompt=6000)
    steps = {step.id: step.value for step in found.steps}
    assert steps["tensorrt-llm.pool.max_seq_len"] == found.kv_tokens == 6848
    assert steps["tensorrt-llm.admission.output_limit"] == 848
    assert found.running == 1


def test_a_whole_fraction_stops_the_start_up() -> None:
    found = knob("free_gpu_memory_fraction", "1")
    assert found.status == "refused"
    assert "below 1" in (found.reason or "")


def test_more_gpus_than_kv_heads_make_the_estimate_too_small() -> None:
    # 4 KV heads on 8 GPUs: estimated half a head, stored one; the second look at the free memory binds.
    found = planned(model="qwen2.5-7b", tp="4")
    assert found.kv_bytes_per_token == 2 * 28 * 1 * 128 * 2
    scenario = Scenario(model="qwen2.5-7b")
    scenario.model = scenario.model._replace(heads=32)
    scenario.tp = 8
    wide = plan(scenario, RELEASE)
    steps = {step.id: step.value for step in wide.steps}
    assert steps["tensorrt-llm.pool.estimate"] == 7168
    assert steps["tensorrt-llm.pool.bytes_per_token"] == wide.kv_bytes_per_token == 14_336
    free = steps["tensorrt-llm.budget.free"]
    assert isinstance(free, int)
    assert wide.blocks == int(0.9 * free / 14_336) // 32


def test_recurrent_states_are_taken_for_every_slot() -> None:
    scenario = Scenario()
    states = ((64, 3), (16, 8, 4))
    full = LayerSpec("full", 2, 8, 128, 128)
    scenario.model = scenario.model._replace(layers=(full, LayerSpec("recurrent", 3, 0, 0, 0, states=states)))
    found = plan(scenario, RELEASE)
    step = next(step for step in found.steps if step.id == "tensorrt-llm.budget.states")
    assert step.value == 3 * 2048 * (64 * 3 + 16 * 8 * 4) * 2
    assert found.kv_bytes_per_token == 2 * 2 * 8 * 128 * 2


def test_a_latent_cache_on_hopper_has_blocks_of_64() -> None:
    scenario = Scenario(**{"tensorrt-llm.tokens_per_block": "32"})
    scenario.model = scenario.model._replace(layers=(LayerSpec("mla", 61, 1, 576, 0),))
    found = plan(scenario, RELEASE)
    assert found.resolved["tokens_per_block"] == (64, "derived")
    assert found.kv_bytes_per_token == 61 * 576 * 2


def test_max_utilization_shows_the_pool_and_no_count() -> None:
    found = knob("capacity_scheduler_policy", "MAX_UTILIZATION")
    assert (found.status, found.running, found.kv_tokens) == ("not_modeled", None, 452_896)


def test_a_static_batch_starts_within_one_step() -> None:
    # 8,192 tokens hold four prompts of 2,000.
    found = knob("capacity_scheduler_policy", "STATIC_BATCH")
    assert (found.running, found.binds, found.running_steady) == (4, "token_budget", None)
    fixed = knob("capacity_scheduler_policy", "STATIC_BATCH", shape="fixed").running_steady
    assert fixed is not None
    assert fixed.mean == 4


def test_request_cap_and_token_budget_bind_when_they_are_lowest() -> None:
    found = knob("max_batch_size", 64)
    assert (found.running, found.binds, found.in_graph) == (64, "request_cap", True)
    tokens = knob("max_num_tokens", 50, prompt=40, max_tokens=400)
    assert (tokens.running, tokens.binds) == (50, "token_budget")


@pytest.mark.parametrize(
    ("sizes", "padding", "largest", "in_graph", "words"),
    [
        ("auto", "auto", 128, False, "lies between the captured sizes 64 and 128"),
        ("auto", "true", 128, True, "padded to the graph of 120"),
        ("113", "auto", 113, True, "replays the graph of 113"),
        ("4,8", "true", 8, False, "above the largest captured size, 8"),
        ("200", "auto", 200, False, "below the smallest captured size, 200"),
        ("5000", "true", 2048, True, "padded to the graph of 2,048"),
        ("5000", "auto", 0, False, "No decode graph is captured"),
    ],
)
def test_graph_of_the_running_batch(sizes: str, padding: str, largest: int, in_graph: bool, words: str) -> None:
    found = planned(**{"tensorrt-llm.cuda_graph_batch_sizes": sizes, "tensorrt-llm.cuda_graph_padding": padding})
    assert (found.largest_decode_graph, found.in_graph) == (largest, in_graph)
    assert words in (found.graph_note or "")
    assert "prefill" in (found.graph_note or "") or largest == 0


def test_the_ledger_adds_up_from_the_total_to_the_tokens() -> None:
    steps = {step.id.removeprefix("tensorrt-llm."): step.value for step in planned().steps}
    assert 20 <= len(steps) <= 35
    total = Fraction(2_125_471_940_608, 25)
    assert steps["budget.total"] == total
    assert steps["weights.total"] == 16_060_522_496
    assert (steps["budget.weights"], steps["budget.runtime"]) == (16_060_522_496, 3_000_000_000)
    assert steps["budget.free"] == int(total - 16_060_522_496 - 3_000_000_000)
    assert steps["budget.left_free"] == 65_958_355_128 - 59_362_519_615
    assert steps["pool.temporary_blocks"] == 4223


@pytest.mark.parametrize("seed", range(20))
def test_sensitivity_equals_the_plan_at_that_assumption(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        inputs = random_scenario(rng)
        inputs.pop("runtime", None)
        base = Scenario(**inputs)
        made = plan(base, RELEASE)
        assumption = rng.randrange(10**8, 2 * 10**10)
        there = plan(Scenario(**inputs, runtime=assumption), RELEASE)
        found = at_assumption(base, RELEASE, made, assumption)
        expected = (there.kv_pool_bytes, there.kv_tokens, there.running) if there.status == "ok" else (None,) * 3
        assert found == (assumption, *expected), inputs


def test_a_plan_takes_well_under_a_millisecond() -> None:
    scenario = Scenario()
    assert min(timeit.repeat(lambda: plan(scenario, RELEASE), number=50, repeat=5)) / 50 < 0.001
