"""The plan of a scenario: published figures, knobs, clips, refusals, and steps that evaluate."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from enginemem.derivation import check_ids, evaluate
from enginemem.engines import vllm
from enginemem.engines.plan import EnginePlan, Sensitivity
from enginemem.inputs import InvalidInputs
from enginemem.release import load_release
from enginemem.scenario import Scenario
from random_scenarios import random_scenario

RELEASE = load_release("vllm")


def plan(**inputs: object) -> EnginePlan:
    return vllm.plan(Scenario(**inputs), RELEASE)


def knob(**values: object) -> dict[str, object]:
    return {f"vllm.{name}": value for name, value in values.items()}


def value(result: EnginePlan, step: str) -> object:
    return next(found.value for found in result.steps if found.id == f"vllm.{step}")


@pytest.mark.parametrize(
    ("inputs", "tokens", "running"),
    [({}, 451_330, 209), ({"max_tokens": 300}, 451_330, 209), ({"kv_dtype": "fp8"}, 902_661, 419)],
)
def test_published_comparisons_come_out_to_the_digit(inputs: dict[str, object], tokens: int, running: int) -> None:
    result = plan(**inputs)
    assert (result.status, result.kv_pool_bytes) == ("ok", 59_156_844_919)
    assert (result.kv_tokens, result.running, result.binds) == (tokens, running, "kv_memory")
    assert (result.page_tokens, result.largest_decode_graph, result.in_graph) == (16, 512, True)
    assert (result.step_token_budget, result.weights_bytes) == (8192, 16_060_522_496)
    assert value(result, "budget.requested") == 78_217_367_415


def test_log_line_is_the_engines() -> None:
    expected = "GPU KV cache size: 451,328 tokens, Maximum concurrency for 131,072 tokens per request: 3.44x"
    assert plan().log_line == expected
    assert plan().kv_tokens_logged == 451_328


def test_steady_state_lies_below_the_published_count_for_geometric_outputs() -> None:
    result = plan()
    assert result.running_steady is not None
    # The engine's scheduler ran 194.82 requests at this mix with its drawn lengths (vector ss-02).
    assert result.running_steady.low <= 194.82 <= result.running_steady.high
    assert result.running is not None
    assert result.running_steady.high < result.running


def test_buffers_are_told_but_not_subtracted() -> None:
    # 131,072 positions x 128 x 2 B and 32 layers x 16 B (spec, section 8).
    assert value(plan(), "weights.buffers") == 131_072 * 128 * 2 + 32 * 16


def test_longest_request_that_fits_is_named() -> None:
    # 10^10 bytes hold 4,768 blocks of 2 MiB, one of them the null block: 4,767 x 16 tokens (vector kv-004).
    result = plan(**knob(kv_cache_memory_bytes="10GB"))
    assert (result.status, result.binds) == ("does_not_fit", "does_not_fit")
    assert result.reason is not None
    for figure in ("131,072", "16.0 GiB", "9.31 GiB", "76,272"):
        assert figure in result.reason
    assert result.kv_pool_bytes == 10_000_000_000


def test_smaller_max_model_len_makes_it_fit() -> None:
    result = plan(max_model_len=76_272, **knob(kv_cache_memory_bytes="10GB"))
    assert (result.status, result.blocks, result.kv_tokens_logged) == ("ok", 4768, 76_288)


def test_given_pool_skips_budget_and_runtime() -> None:
    results = [plan(runtime=text, **knob(kv_cache_memory_bytes="40GB")) for text in ("1GB", "9GB")]
    assert [result.kv_pool_bytes for result in results] == [40_000_000_000] * 2
    assert results[0].kv_tokens == 40_000_000_000 // 131_072


def test_given_pool_beyond_the_gpu_does_not_fit() -> None:
    assert plan(**knob(kv_cache_memory_bytes="80GB")).status == "does_not_fit"
    assert plan(**knob(num_gpu_blocks_override=10**6)).status == "does_not_fit"


def test_given_blocks_decide_tokens_and_log() -> None:
    result = plan(**knob(num_gpu_blocks_override=20_000))
    assert (result.blocks, result.kv_tokens, result.kv_tokens_logged) == (20_000, 320_000, 320_000)
    assert result.running == 320_000 // 2150


def test_weights_larger_than_the_gpu_do_not_fit() -> None:
    result = plan(model="llama-3.1-70b")
    assert result.status == "does_not_fit"
    assert result.reason == "weights of 141.11 GB per GPU, and the GPU has 85.02 GB"
    assert (result.running, result.kv_tokens, result.blocks) == (None, None, None)


def test_runtime_memory_that_uses_up_the_budget_does_not_fit() -> None:
    result = plan(runtime="70GB")
    assert result.status == "does_not_fit"
    assert result.reason is not None
    assert "78.22 GB" in result.reason


def test_whole_gpu_is_refused() -> None:
    assert plan(**knob(gpu_memory_utilization="1")).status == "refused"
    assert plan(**knob(gpu_memory_utilization="0.99")).status == "ok"


def test_watermark_of_one_is_refused_and_a_small_one_costs_running_requests() -> None:
    assert plan(**knob(watermark="1")).status == "refused"
    plain, marked = plan().running_steady, plan(**knob(watermark="0.01")).running_steady
    assert plain is not None
    assert marked is not None
    assert 1 < plain.mean - marked.mean < 3


def test_defaults_depend_on_the_class_and_the_device_name() -> None:
    expected = {"h100-sxm": (8192, 1024), "a100-80-sxm": (2048, 256), "b200": (16384, 1024), "l4": (2048, 256)}
    for gpu, (tokens, requests) in expected.items():
        resolved = plan(gpu=gpu, model="llama-3.2-1b").resolved
        assert resolved["max_num_batched_tokens"] == (tokens, "default")
        assert resolved["max_num_seqs"] == (requests, "default")


def test_cuda_total_decides_the_class_where_it_can() -> None:
    # 81,008 MiB: every nvidia-smi total up to 5 % more is at least 70 GiB and below 160 GiB.
    result = plan(gpu="h100-pcie")
    assert result.resolved["max_num_batched_tokens"].value == 8192
    notes = [step.note for step in result.steps if step.id == "vllm.resolve.default_step_tokens"]
    assert notes[0] is not None
    assert "same class" in notes[0]


def test_class_that_the_cuda_total_leaves_open_is_not_guessed() -> None:
    result = plan(gpu="h100-pcie", cuda_total="68GiB")
    assert result.status == "not_modeled"
    assert result.reason is not None
    assert "give smi_total" in result.reason
    given = plan(gpu="h100-pcie", cuda_total="68GiB", **knob(max_num_seqs=64, max_num_batched_tokens=4096))
    assert given.status == "ok"


def test_unknown_cuda_total_names_the_input_that_supplies_it() -> None:
    result = plan(gpu="gb300")
    assert result.status == "not_modeled"
    assert result.reason is not None
    assert "give cuda_total" in result.reason


def test_parts_of_other_vendors_are_not_modeled() -> None:
    assert plan(gpu="mi300x").status == "not_modeled"


def test_step_budget_clips_the_default_request_cap() -> None:
    result = plan(prompt=10, max_tokens=10, mean_output=10, **knob(max_num_batched_tokens=100))
    assert result.resolved["max_num_seqs"] == (100, "derived")
    assert (result.running, result.binds) == (100, "token_budget")


def test_short_sequences_clip_the_default_step_budget() -> None:
    result = plan(max_model_len=100, prompt=10, max_tokens=10, mean_output=10, **knob(max_num_seqs=4))
    assert result.resolved["max_num_batched_tokens"] == (400, "derived")
    assert (result.running, result.binds) == (4, "request_cap")
    assert result.running_steady is not None
    assert (result.running_steady.mean, result.running_steady.regime) == (4.0, "request_cap")


def test_request_cap_above_the_step_budget_is_refused() -> None:
    result = plan(**knob(max_num_seqs=10_000))
    assert (result.status, result.step_token_budget) == ("refused", 8192)


def test_max_model_len_above_the_models_own_is_refused() -> None:
    result = plan(max_model_len=131_073)
    assert result.status == "refused"
    assert result.reason is not None
    assert "131,072" in result.reason


@pytest.mark.parametrize("prompt", [131_072, 131_073])
def test_prompt_that_leaves_no_room_for_output_is_refused(prompt: int) -> None:
    result = plan(prompt=prompt, max_tokens=1, mean_output=1)
    assert (result.status, result.binds) == ("refused", "prompt_limit")
    assert result.log_line is not None  # the server is up, it only refuses the request
    assert result.running is None


def test_output_limit_above_the_maximum_length_is_refused() -> None:
    result = plan(max_model_len=4096, max_tokens=4097)
    assert (result.status, result.binds) == ("refused", "prompt_limit")


def test_output_limit_is_clipped_to_what_the_prompt_leaves() -> None:
    result = plan(max_model_len=4096, prompt=3000, max_tokens=4096, mean_output=2000)
    assert result.status == "ok"
    assert value(result, "resolve.output_limit") == 1096
    assert value(result, "layout.mean_context") == 3000 + 548


def test_mean_context_may_end_in_a_half() -> None:
    result = plan(mean_output=301)
    assert value(result, "layout.mean_context") == Fraction(4301, 2)
    assert result.running == 2 * 451_330 // 4301


def test_step_budget_limits_short_outputs_in_the_steady_state() -> None:
    # 8,192 tokens a step feed 8,192 / 2,004 requests of 5 tokens of output, and one is cut by the step's end.
    result = plan(mean_output=5, max_tokens=5, shape="fixed")
    assert result.running_steady is not None
    assert result.running_steady.regime == "token_budget"
    assert result.running_steady.mean == pytest.approx(8192 * 5 / 2004 + 1)


def test_decode_above_the_largest_graph_replays_nothing() -> None:
    result = plan(prompt=100, mean_output=10, max_tokens=10)
    assert (result.running, result.in_graph, result.largest_decode_graph) == (1024, False, 512)
    assert result.graph_note is not None
    assert result.graph_note.startswith("A decode step of 1,024 requests runs compiled code without replay")


def check_steps(result: EnginePlan) -> None:
    check_ids(result.steps)
    for step in result.steps:
        assert evaluate(step, vllm.RULES) == step.value, (step.id, step.expression)


def expected_sensitivity(inputs: dict[str, object], assumption: int) -> Sensitivity:
    result = plan(**{**inputs, "runtime": f"{assumption}B"})
    if result.status != "ok":
        return Sensitivity(assumption, None, None, None)
    return Sensitivity(assumption, result.kv_pool_bytes, result.kv_tokens, result.running)


@pytest.mark.parametrize("seed", range(4))
def test_every_step_evaluates_to_its_value_and_sensitivity_is_the_plans(seed: int) -> None:
    rng = random.Random(seed)
    checked = 0
    while checked < 300:
        inputs = random_scenario(rng)
        try:
            scenario = Scenario(**inputs)
        except InvalidInputs:
            continue
        checked += 1
        result = vllm.plan(scenario, RELEASE)
        check_steps(result)
        if result.status == "ok":
            assert result.running is not None
            assert result.running >= 1
            assert result.running_steady is not None
            assert result.running_steady.low <= result.running_steady.mean <= result.running_steady.high
        else:
            assert result.reason
        for assumption in (0, 1_800_000_000, rng.randrange(10**11)):
            got = vllm.at_assumption(scenario, RELEASE, result, assumption)
            assert got == expected_sensitivity(inputs, assumption)
