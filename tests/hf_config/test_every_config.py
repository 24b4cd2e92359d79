"""Every public configuration gets a plan from each engine, or an answer that says what is not known."""

from collections import Counter
from importlib import import_module

import pytest

from enginemem import Architecture, Scenario, compare
from enginemem.derivation import check_ids, evaluate
from public_configs import CONFIGS, UNMODELED

PACKAGES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt_llm"}
PLANNED = sorted(set(CONFIGS) - set(UNMODELED))


def scenario(name: str) -> Scenario:
    """The configuration on H200s, split as far as it goes."""
    model = Architecture.from_hf_config(CONFIGS[name])
    tp = max(size for size in (1, 2, 4, 8) if model.tensor_parallel_problem(size) is None)
    return Scenario(gpu="h200-sxm", tp=tp).with_model(model)


@pytest.mark.parametrize("name", PLANNED)
def test_every_engine_answers_and_every_step_evaluates(name: str) -> None:
    for engine, plan in compare(scenario(name)).engines.items():
        assert plan.status == "ok" or plan.reason, engine
        rules = import_module(f"enginemem.engines.{PACKAGES[engine]}").RULES
        check_ids(plan.steps)
        for step in plan.steps:
            assert evaluate(step, rules) == step.value, step.id
        if plan.status == "ok":
            assert (plan.running or 0) > 0
            assert (plan.kv_bytes_per_token or 0) > 0


@pytest.mark.parametrize("name", sorted(UNMODELED))
def test_what_no_engine_lays_out_is_said_by_every_engine(name: str) -> None:
    for engine, plan in compare(scenario(name)).engines.items():
        assert plan.status == "not_modeled", engine
        assert UNMODELED[name] in (plan.reason or "")


def test_a_class_that_no_registry_has_is_said_with_the_registry() -> None:
    plans = compare(scenario("stepfun-ai--Step-3.7-Flash")).engines
    assert plans["vllm"].reason == (
        "no class Step3p7FlashForCausalLM in the registry of vLLM 0.32.0 (vllm/model_executor/models/registry.py); "
        "it has Step3p5ForCausalLM and Step3p7ForConditionalGeneration"
    )
    assert "no class Step3p7FlashForCausalLM in the registry of SGLang 0.5.22" in (plans["sglang"].reason or "")
    assert "the source of release 1.2.1 is not at hand" in (plans["tensorrt-llm"].reason or "")


def test_most_plans_are_modelled() -> None:
    statuses: Counter[tuple[str, str]] = Counter()
    for name in PLANNED:
        statuses.update((engine, plan.status) for engine, plan in compare(scenario(name)).engines.items())
    # TensorRT-LLM 1.2.1 sizes its cache with one width: indexers, KDA and layers of different heads are beyond it.
    for engine, most in {"vllm": 2, "sglang": 0, "tensorrt-llm": 16}.items():
        assert statuses[engine, "not_modeled"] <= most, statuses


def test_the_engines_keep_windows_each_in_its_own_way() -> None:
    plans = compare(Scenario(gpu="h200-sxm").with_model(Architecture.from_hf_config(CONFIGS["openai--gpt-oss-20b"])))
    token = 24 * 2 * 8 * 64 * 2
    assert [plan.kv_bytes_per_token for plan in plans.engines.values()] == [token // 2, token // 2, token]
    # vLLM: groups with blocks of their own; SGLang: a second pool; TensorRT-LLM: every layer at full length.
    steps = {step.id: step.value for plan in plans.engines.values() for step in plan.steps}
    assert plans.engines["vllm"].kv_tokens is None
    assert steps["sglang.pool.window_tokens"] == int(plans.engines["sglang"].kv_tokens * 0.8)  # type: ignore[operator]
    assert steps["tensorrt-llm.layout.elements"] == token // 2


def test_the_engines_keep_recurrent_states_each_in_its_own_way() -> None:
    model = Architecture.from_hf_config(CONFIGS["nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"])
    plans = compare(Scenario(gpu="h200-sxm").with_model(model)).engines
    raw = 23 * (3 * (64 * 64 + 2 * 8 * 128) * 2 + 64 * 64 * 128 * 4)
    # SGLang: five slots a request; vLLM: a block in each of four groups, padded to the attention page.
    assert plans["sglang"].kv_fixed_bytes_per_request == 5 * raw
    assert raw < (plans["vllm"].kv_fixed_bytes_per_request or 0) < 1.1 * raw
    states = {step.id: step.value for step in plans["tensorrt-llm"].steps}["tensorrt-llm.budget.states"]
    # TensorRT-LLM: one slot for each of 2,048 requests, 16-bit, beside the pool.
    assert states == 2_048 * 23 * (3 * (64 * 64 + 2 * 8 * 128) + 64 * 64 * 128) * 2


def test_latent_rows_are_not_divided_by_tensor_parallelism() -> None:
    plans = compare(scenario("deepseek-ai--DeepSeek-V3")).engines
    assert {plan.kv_bytes_per_token for plan in plans.values()} == {61 * 576 * 2}
