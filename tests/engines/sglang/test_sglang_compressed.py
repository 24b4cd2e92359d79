"""DeepSeek V4 in SGLang: a window pool and states by the request cap, compressed rows in what is left.

The figures of POOLS are the engine's own: `DSV4PoolConfigurator.calculate_pool_sizes` of the 0.5.22 wheel
(sglang/srt/model_executor/pool_configurator.py), run in CPython with stand-ins for torch and the server's context (no
speculative decoding, overlap scheduling on, no --swa-full-tokens-ratio), on the fields of the public configurations.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from enginemem import Architecture, Scenario, compare
from enginemem.engines.plan import EnginePlan
from enginemem.engines.sglang.compressed import compressed_pool, full_tokens
from enginemem.engines.sglang.model import facts_from_architecture
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.resolve import configuration
from enginemem.release import load_release
from public_configs import CONFIGS

FLASH, PRO = "deepseek-ai--DeepSeek-V4-Flash", "deepseek-ai--DeepSeek-V4-Pro"
RELEASE = load_release("sglang")
H200_MIB = 143_771

# (model, request cap, chunk, bytes) -> (tokens, window tokens, bytes a token, bytes a window token, state bytes).
POOLS = [
    ((FLASH, None, None, 113_522_156_964), (23_459_584, 606_464, 3_899.25, 31_875.0, 2_715_811_840)),
    ((FLASH, None, None, 26_000_000_000), (1_013_760, 606_464, 3_899.25, 31_875.0, 2_715_811_840)),
    ((FLASH, 64, 16_384, 80 * 2**30), (20_374_016, 180_480, 3_899.25, 31_875.0, 702_545_920)),
    ((FLASH, 1_024, None, 10**11), (3_461_632, 2_375_936, 3_899.25, 31_875.0, 10_768_875_520)),
    ((PRO, None, None, 113_522_156_964), (14_650_368, 606_464, 5_586.75, 45_285.0, 4_209_508_352)),
    ((PRO, 64, 16_384, 80 * 2**30), (13_717_504, 180_480, 5_586.75, 45_285.0, 1_088_946_176)),
    # The engine stops: "The DSV4 SWA pool cap (606464 tokens, 25.58 GB) leaves no room for the full KV pool".
    ((PRO, None, None, 26_000_000_000), (0, 606_464, 5_586.75, 45_285.0, 4_209_508_352)),
]


@pytest.mark.parametrize(("given", "expected"), POOLS)
def test_pools_are_those_of_the_engine(
    given: tuple[str, int | None, int | None, int], expected: tuple[int, int, float, float, int]
) -> None:
    name, cap, chunk, memory = given
    model = facts_from_architecture(
        Architecture.from_hf_config(CONFIGS[name]), hybrid_classes=RELEASE.values["hybrid_window_classes"]
    )
    assert model is not None
    options = Options(tp_size=8, max_running_requests=cap, chunked_prefill_size=chunk)
    config = configuration(RELEASE, model, options, mib=H200_MIB, capability=(9, 0))
    found = compressed_pool(RELEASE, model, config)
    tokens = full_tokens(found, memory, page=config.page_size)
    assert (tokens, found.window, found.token, found.window_token, found.states) == expected


def plan_of(name: str, *, gpu: str = "h200-sxm", **inputs: str) -> EnginePlan:
    model = Architecture.from_hf_config(CONFIGS[name])
    return compare(Scenario(gpu=gpu, tp=8, **inputs).with_model(model)).engines["sglang"]


def test_a_plan_runs_as_many_requests_as_the_class_allows() -> None:
    plan = plan_of(FLASH)
    assert plan.status == "ok"
    assert plan.kv_tokens == 23_459_584
    assert plan.kv_bytes_per_token == Fraction(15_597, 4)
    assert (plan.running, plan.binds, plan.page_tokens) == (256, "request_cap", 256)
    assert plan.resolved["max_running_requests"] == (256, "default")
    assert plan.resolved["attention_backend"].value == "dsv4"
    assert (plan.largest_decode_graph, plan.in_graph) == (256, True)
    assert "run eager" in (plan.graph_note or "")
    assert plan.decode_step_seconds is None


def test_more_requests_leave_fewer_tokens() -> None:
    few, many = plan_of(FLASH), plan_of(FLASH, **{"sglang.max_running_requests": "512"})
    assert (many.kv_tokens or 0) < (few.kv_tokens or 0)
    assert many.resolved["max_running_requests"] == (512, "user")


def test_windows_that_take_the_whole_pool_do_not_fit() -> None:
    plan = plan_of(PRO, gpu="h100-sxm", **{"sglang.max_running_requests": "256"})
    assert plan.status == "does_not_fit"
    plan = plan_of(PRO, **{"sglang.max_running_requests": "1024"})
    assert plan.status == "does_not_fit"
    assert "window pool of" in (plan.reason or "")


def test_what_the_kernels_do_not_serve_is_said() -> None:
    assert plan_of(FLASH, gpu="a100-80-sxm").status == "not_modeled"
    assert plan_of(FLASH, kv_dtype="bf16").status == "refused"
    assert plan_of(FLASH, kv_dtype="fp8").kv_tokens == plan_of(FLASH).kv_tokens
