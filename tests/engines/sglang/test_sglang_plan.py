"""The whole plan: published figures, the ledger, and what the engine does with unfortunate inputs."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from enginemem.derivation import check_ids, evaluate
from enginemem.engines import sglang
from enginemem.engines.plan import EnginePlan
from enginemem.engines.sglang.admission import published_running
from enginemem.hardware import load_gpu
from enginemem.release import load_release
from enginemem.scenario import Scenario

RELEASE = load_release("sglang")


def plan(**inputs: Any) -> EnginePlan:
    return sglang.plan(Scenario(**inputs), RELEASE)


def value(result: EnginePlan, step: str) -> Any:
    return next(found.value for found in result.steps if found.id == f"sglang.{step}")


@pytest.mark.parametrize(
    ("inputs", "tokens", "running", "decayed", "burst"),
    [
        ({}, 412441, 121, 176, 120),
        ({"max_tokens": 300}, 412441, 186, 190, 186),
        ({"kv_dtype": "fp8"}, 824883, 242, 353, 241),
    ],
)
def test_published_figures(inputs: dict[str, Any], tokens: int, running: int, decayed: int, burst: int) -> None:
    got = plan(**inputs)
    assert (got.status, got.kv_pool_bytes, got.kv_tokens) == ("ok", 54059543075, tokens)
    assert (got.running, got.running_decayed, got.running_burst) == (running, decayed, burst)
    assert (got.binds, got.in_graph, got.largest_decode_graph) == ("kv_memory", True, 256)
    assert (got.page_tokens, got.step_token_budget) == (1, 8192)
    assert got.log_line is not None
    assert got.log_line.startswith(f"max_total_num_tokens={tokens}, chunked_prefill_size=8192, ")


def test_the_ledger_adds_up_from_the_total_to_the_pool() -> None:
    got = plan()
    assert value(got, "budget.before") == 78.68
    assert value(got, "reserve.total") == 13904
    assert value(got, "budget.after") == value(got, "budget.before") - value(got, "budget.weights")
    assert value(got, "budget.pool") == 54059543075
    assert 20 <= len(got.steps) <= 35


def test_steps_evaluate_to_their_values_over_random_scenarios() -> None:
    rng = random.Random(5)
    gpus = ("h100-sxm", "b200", "l40s", "t4", "rtx-5090", "dgx-spark-gb10", "h100-pcie", "rtx-4090", "mi300x")
    for _ in range(400):
        prompt, limit = int(10 ** rng.uniform(0, 5.3)), int(10 ** rng.uniform(0, 5.3))
        inputs: dict[str, Any] = {
            "gpu": rng.choice(gpus),
            "model": rng.choice(("llama-3.1-8b", "llama-3.2-1b", "qwen3-32b", "llama-3.3-70b")),
            "tp": rng.choice((1, 2, 4, 8)),
            "prompt": prompt,
            "max_tokens": limit,
            "mean_output": rng.randint(1, limit),
            "shape": rng.choice(("geometric", "fixed", "uniform")),
            "weight_dtype": rng.choice(("auto", "bf16", "fp8")),
            "kv_dtype": rng.choice(("auto", "bf16", "fp8", "nvfp4")),
        }
        if rng.random() < 0.5:
            inputs["sglang.page_size"] = rng.choice((1, 16, 64, 128))
            inputs["sglang.schedule_conservativeness"] = rng.randrange(3000) / 1000
            inputs["sglang.chunked_prefill_size"] = rng.choice((-1, 128, 8192, rng.randrange(1, 20000)))
            inputs["sglang.max_running_requests"] = rng.choice((1, 64, 1_000_000))
        if rng.random() < 0.3:
            inputs["sglang.mem_fraction_static"] = rng.randint(1, 1000) / 1000
        got = plan(**inputs)
        check_ids(got.steps)
        for step in got.steps:
            assert evaluate(step, sglang.RULES) == step.value, step
        if got.status == "ok":
            assert got.running is not None
            assert got.running_burst is not None
            assert got.running_steady is not None
            cap = got.resolved["max_running_requests"].value
            assert isinstance(cap, int)
            assert max(got.running, got.running_burst, got.running_steady.high) <= cap
            assert got.running_steady.low <= got.running_steady.mean <= got.running_steady.high
        else:
            assert got.reason


def test_runtime_memory_does_not_move_the_pool() -> None:
    base, more = plan(), plan(runtime="20GB")
    assert (base.kv_pool_bytes, base.running) == (more.kv_pool_bytes, more.running)
    assert value(base, "pool.slack_left") > 0 > value(more, "pool.slack_left")
    for assumption in (10**9, 20 * 10**9):
        got = sglang.at_assumption(Scenario(), RELEASE, base, assumption)
        assert got == (assumption, base.kv_pool_bytes, base.kv_tokens, base.running)


def test_the_preload_assumption_does() -> None:
    less = plan(preload="1GiB").kv_pool_bytes
    assert less is not None
    # half a GiB less before loading takes 0.83 of half a GiB from the pool
    assert 54059543075 - less == pytest.approx(0.83 * 2**29, abs=2)


def test_a_request_cap_binds_and_decides_the_graphs() -> None:
    got = plan(**{"sglang.max_running_requests": 48})
    assert (got.running, got.binds, got.largest_decode_graph) == (48, "request_cap", 48)
    assert got.running_burst == 47  # the split prompt of the last pass counts twice
    assert got.resolved["max_running_requests"] == (48, "user")
    assert got.running_steady is not None
    assert got.running_steady.regime == "request_cap"


def test_prompt_and_max_tokens_beyond_the_context_are_refused() -> None:
    got = plan(prompt=130000, max_tokens=2000)
    assert (got.status, got.binds, got.kv_tokens) == ("refused", "prompt_limit", 412441)
    assert got.reason is not None
    assert "132,000" in got.reason
    assert plan(prompt=131072, max_tokens=1, mean_output=1).status == "refused"
    assert plan(prompt=131066, max_tokens=1, mean_output=1).status == "refused"  # context - 6
    assert plan(prompt=131065, max_tokens=1, mean_output=1).status == "ok"


def test_outputs_at_the_end_of_the_context_are_clipped() -> None:
    # 2,000 + 129,072 fill the context; the scheduler takes two tokens off
    assert value(plan(max_tokens=129072), "admission.max_new") == 129070


def test_outputs_beyond_an_empty_pool_are_clipped_to_it() -> None:
    got = plan(gpu="rtx-5090", max_tokens=120000)
    assert got.kv_tokens is not None
    assert got.kv_tokens < 120000
    assert value(got, "admission.max_new") == got.kv_tokens - 2000 - 1 - 1


def test_a_context_above_the_models_is_refused() -> None:
    got = plan(max_model_len=131073)
    assert (got.status, got.kv_tokens) == ("refused", None)
    assert plan(max_model_len=8192).resolved["context_length"] == (8192, "user")


def test_a_chunk_that_is_no_multiple_of_the_page_is_refused() -> None:
    got = plan(**{"sglang.page_size": 64, "sglang.chunked_prefill_size": 100})
    assert got.status == "refused"


def test_blackwell_pages_are_64_tokens() -> None:
    got = plan(gpu="b200")
    assert (got.page_tokens, got.resolved["attention_backend"]) == (64, ("trtllm_mha", "derived"))
    assert got.kv_tokens is not None
    assert got.kv_tokens % 64 == 0


def test_weights_that_leave_nothing_do_not_fit_and_say_what_would() -> None:
    got = plan(**{"sglang.mem_fraction_static": 0.1})
    assert (got.status, got.binds) == ("does_not_fit", "does_not_fit")
    # 1 - 63.72247 / 78.68 = 0.19011
    assert got.reason is not None
    assert "0.1901" in got.reason
    assert "0.191" in got.reason
    assert plan(model="llama-3.1-405b").status == "does_not_fit"


@pytest.mark.parametrize("inputs", [{"gpu": "dgx-spark-gb10"}, {"smi_total": "2B"}])
def test_less_than_one_mib_does_not_fit(inputs: dict[str, Any]) -> None:
    got = plan(cuda_total="1B", preload="0B", **inputs)
    assert (got.status, got.binds) == ("does_not_fit", "does_not_fit")
    assert got.reason is not None
    assert "less than one MiB" in got.reason


def test_a_request_cap_that_the_pool_lowers_is_not_the_users() -> None:
    got = plan(max_model_len=4000, **{"sglang.max_running_requests": 10**6})
    resolved = got.resolved["max_running_requests"]
    assert (resolved.value, resolved.set_by) == (412441 // 2, "derived")


def test_the_whole_gpu_may_be_static() -> None:
    got = plan(**{"sglang.mem_fraction_static": 1})
    assert got.status == "ok"
    assert value(got, "budget.slack") == 0


def test_a_fraction_needs_the_nvidia_smi_total() -> None:
    got = plan(gpu="h100-pcie")
    assert got.status == "not_modeled"
    assert got.reason is not None
    assert "smi_total" in got.reason
    assert plan(gpu="h100-pcie", smi_total="81559MiB").status == "ok"


def test_a_cuda_total_that_decides_the_class_is_enough_with_a_users_fraction() -> None:
    got = plan(gpu="h100-pcie", **{"sglang.mem_fraction_static": 0.8})
    assert (got.status, got.step_token_budget, got.largest_decode_graph) == ("ok", 8192, 256)


def test_unified_memory_falls_back_to_torchs_total() -> None:
    got = plan(gpu="dgx-spark-gb10")
    total = load_gpu("dgx-spark-gb10").cuda_total
    assert total is not None
    assert value(got, "resolve.capacity") == int(total // 2**20)
    assert got.status == "ok"


def test_other_vendors_and_unknown_totals_are_not_modeled() -> None:
    assert plan(gpu="mi300x").status == "not_modeled"
    assert "cuda_total" in (plan(gpu="rtx-4090").reason or "")


def test_nvfp4_is_refused_before_blackwell_and_not_modeled_on_it() -> None:
    assert plan(kv_dtype="nvfp4").status == "refused"
    assert plan(gpu="b200", kv_dtype="nvfp4").status == "not_modeled"


def test_fp8_weights_keep_embeddings_and_head_in_16_bits() -> None:
    got = plan(weight_dtype="fp8")
    assert got.weights_bytes == 6979321856 + 2 * (8030261248 - 6979321856)
    assert plan(gpu="t4", model="llama-3.2-1b", weight_dtype="fp8").status == "refused"


def test_the_published_count_is_zero_where_one_request_does_not_fit() -> None:
    args: dict[str, Any] = {"prompt": 2000, "booked": 2000, "ratio": Fraction(7, 10), "cap": 2048, "keep": 4001}
    assert published_running(tokens=4000, **args) == 0
    assert published_running(tokens=4001, **args) == 1
    assert published_running(tokens=4001 + 3400, **args) == 2


def test_conservativeness_scales_the_booked_share() -> None:
    got = plan(**{"sglang.schedule_conservativeness": "0.3"})
    assert value(got, "admission.ratio") == Fraction(21, 100)
    # 1 + floor(408,440 / (2,000 + 0.21 x 2,000)) = 1 + floor(168.8)
    assert got.running == 169
    assert value(plan(**{"sglang.schedule_conservativeness": 10}), "admission.ratio") == 1
