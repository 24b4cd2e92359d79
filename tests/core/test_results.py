"""What an engine does with a valid input is a result, never an error: clip, refuse, not fit, not modeled."""

import pytest

from enginemem import Scenario, compare
from enginemem.engines.plan import EnginePlan


def plans(**inputs: object) -> dict[str, EnginePlan]:
    return dict(compare(Scenario(**inputs)).engines)


def test_weights_larger_than_the_gpu_do_not_fit_anywhere() -> None:
    for plan in plans(model="llama-3.1-405b").values():
        assert plan.status == "does_not_fit"
        assert plan.binds == "does_not_fit"
        assert plan.reason
        assert plan.running is None or plan.running == 0


def test_a_prompt_above_the_step_budget_is_refused_by_tensorrt_llm_alone() -> None:
    result = plans(prompt=8193, max_tokens=300)
    assert result["tensorrt-llm"].status == "refused"
    assert result["tensorrt-llm"].binds == "prompt_limit"
    assert "8,192" in (result["tensorrt-llm"].reason or "")
    assert result["vllm"].status == result["sglang"].status == "ok"
    chunked = plans(prompt=8193, max_tokens=300, **{"tensorrt-llm.enable_chunked_prefill": True})
    assert chunked["tensorrt-llm"].status == "ok"


def test_a_prompt_above_the_model_length_is_refused_by_every_engine() -> None:
    for plan in plans(prompt=200_000, **{"tensorrt-llm.enable_chunked_prefill": True}).values():
        assert (plan.status, plan.binds) == ("refused", "prompt_limit")


def test_an_output_beyond_the_context_is_clipped_or_refused_as_each_engine_does() -> None:
    result = plans(model="qwen3-8b", prompt=8000, max_tokens=40_000)
    assert result["tensorrt-llm"].status == "ok"
    clip = {step.id: step for step in result["tensorrt-llm"].steps}
    assert any(step.value == 40_960 - 8000 for step in clip.values())
    for engine in ("vllm", "sglang"):
        plan = result[engine]
        assert plan.status in ("ok", "refused")
        assert plan.status == "ok" or plan.reason


def test_one_request_of_the_model_length_that_does_not_fit_is_vllms_error_with_the_longest_that_fits() -> None:
    result = plans(gpu="l4", prompt=500, max_tokens=500)
    assert result["vllm"].status == "does_not_fit"
    assert "GiB" in (result["vllm"].reason or "")
    assert "longest" in (result["vllm"].reason or "") or "fits" in (result["vllm"].reason or "")


@pytest.mark.parametrize("gpu", ["mi300x", "mi325x", "mi355x"])
def test_parts_of_another_vendor_are_not_modeled(gpu: str) -> None:
    for plan in plans(gpu=gpu).values():
        assert plan.status == "not_modeled"
        assert plan.reason


def test_a_part_without_a_cuda_total_is_not_modeled_until_one_is_given() -> None:
    for plan in plans(gpu="a100-80-pcie").values():
        assert plan.status == "not_modeled"
        assert "cuda_total" in (plan.reason or "") or "CUDA total" in (plan.reason or "")
    given = plans(gpu="a100-80-pcie", cuda_total="79.15GiB", smi_total="81920MiB")
    assert {plan.status for plan in given.values()} == {"ok"}


def test_sglang_needs_the_nvidia_smi_total_for_its_fraction_and_the_others_do_not() -> None:
    result = plans(gpu="a10g", max_model_len=16_000)
    assert result["sglang"].status == "not_modeled"
    assert result["vllm"].status == "ok"
    assert result["tensorrt-llm"].status == "ok"
    assert plans(gpu="a10g", **{"sglang.mem_fraction_static": "0.85"})["sglang"].status == "ok"


def test_a_missing_bandwidth_leaves_the_floor_out_and_nothing_else() -> None:
    plan = plans(gpu="h100-nvl")["vllm"]
    assert plan.status == "ok"
    assert plan.running is not None
    assert plan.decode_step_seconds is None


def test_auto_and_the_engines_default_given_explicitly_agree_but_name_who_set_it() -> None:
    auto, given = plans()["vllm"], plans(**{"vllm.max_num_seqs": 1024})["vllm"]
    assert auto.running == given.running
    assert auto.resolved["max_num_seqs"].set_by == "default"
    assert given.resolved["max_num_seqs"].set_by == "user"


def test_vllm_clips_an_unset_request_cap_by_the_step_budget() -> None:
    plan = plans(**{"vllm.max_num_batched_tokens": 100})["vllm"]
    assert plan.resolved["max_num_seqs"].value == 100
    assert plan.resolved["max_num_seqs"].set_by == "derived"


def test_the_mean_after_the_cut_is_a_step() -> None:
    for plan in plans(max_tokens=400).values():
        expected = sum((1 - 1 / 300) ** reached for reached in range(400))
        means = [step.value for step in plan.steps if "output" in step.id and isinstance(step.value, float)]
        assert any(value == pytest.approx(expected) for value in means), plan.engine


def test_a_request_that_alone_exceeds_the_pool_runs_nothing() -> None:
    result = plans(gpu="rtx-4090", cuda_total="23.5GiB", prompt=8000, max_tokens=8000, max_model_len=8192)
    assert result["tensorrt-llm"].status in ("ok", "refused", "does_not_fit")
    for plan in result.values():
        assert plan.running is None or plan.running >= 0
