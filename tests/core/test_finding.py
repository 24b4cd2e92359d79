"""The finding says who makes the gap, or that nobody does; never more than the figures hold."""

from enginemem.engines.plan import EnginePlan
from enginemem.finding import find


def plan(engine: str, pool: int, running: int, status: str = "ok") -> EnginePlan:
    made = EnginePlan(engine, "0")
    made.kv_pool_bytes, made.running = pool, running
    if status != "ok":
        made.stop("does_not_fit", "too large")
    return made


def finding(**plans: EnginePlan) -> str:
    return find({made.engine: made for made in plans.values()}).text


def test_the_admission_rules_make_the_gap_when_running_differs_more_than_the_pools() -> None:
    text = finding(a=plan("vllm", 110, 200), b=plan("sglang", 100, 120), c=plan("tensorrt-llm", 110, 100))
    assert text == (
        "KV pools differ by 10 %, running requests by 100 % (vLLM runs 200, TensorRT-LLM 100): "
        "the admission rules make the gap."
    )


def test_what_binds_is_named_where_it_is_not_the_memory() -> None:
    capped, full = plan("vllm", 110, 64), plan("sglang", 100, 76)
    capped.binds, full.binds = "request_cap", "kv_memory"
    assert finding(a=capped, b=full).endswith(
        "(SGLang runs 76, vLLM 64): SGLang is bound by KV memory, vLLM by its request cap."
    )
    full.binds = "request_cap"
    assert finding(a=capped, b=full).endswith("(SGLang runs 76, vLLM 64): the engines' request caps make the gap.")
    capped.binds = "token_budget"
    assert finding(a=capped, b=full).endswith("SGLang is bound by its request cap, vLLM by its token budget.")


def test_the_premise_is_denied_when_the_pools_differ_as_much() -> None:
    text = finding(a=plan("vllm", 300, 150), b=plan("sglang", 100, 100))
    assert "do not make the gap" in text


def test_equal_counts_have_no_gap() -> None:
    assert "every engine runs 256 requests" in finding(a=plan("vllm", 300, 256), b=plan("sglang", 100, 256))


def test_equal_counts_speak_of_the_engines_that_have_one() -> None:
    text = finding(a=plan("vllm", 300, 1), b=plan("sglang", 100, 1), c=plan("tensorrt-llm", 100, 9, "does_not_fit"))
    assert "vLLM and SGLang each run 1 request: no gap to explain. (TensorRT-LLM does not fit.)" in text


def test_engines_without_a_plan_are_named() -> None:
    text = finding(a=plan("vllm", 300, 256), b=plan("sglang", 100, 256, "does_not_fit"))
    assert text == "Only vLLM runs requests with these inputs: 256. (SGLang does not fit.)"
    assert finding(b=plan("sglang", 100, 256, "x")).startswith("No engine runs a request")
