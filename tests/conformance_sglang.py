"""SGLang's vector files: fields to public functions, no arithmetic."""

from __future__ import annotations

from typing import Any

from enginemem.engines import sglang
from enginemem.engines.sglang import model, options, steady
from enginemem.release import load_release
from enginemem.traffic import OutputMoments
from enginemem.units import parse_decimal
from vector_runner import MISSING, Beside, Case, Handlers, Pair, Within

SGLANG = load_release("sglang")
LONG_OUTPUT, SMALL_BATCH = 1000, 50


def _server(case: Case, beside: Beside) -> tuple[Any, Any, Any]:
    hybrid = SGLANG.values["hybrid_window_classes"]
    facts = model.facts_from_config(beside("models.json")[case["model"]], hybrid_classes=hybrid)
    flags = options.Options.from_flags({"tp-size": case.get("tp", 1), **case.get("flags", {})})
    capability = tuple(case["compute_capability"])
    return (
        facts,
        flags,
        sglang.resolve.configuration(SGLANG, facts, flags, mib=case["nvidia_smi_mib"], capability=capability),
    )


def sglang_memory(case: Case, beside: Beside) -> Pair:
    """Reserve, fraction, chunk, graphs, page and backend."""
    resolved = _server(case, beside)[2]
    return case["expect"], {name: getattr(resolved, name, MISSING) for name in case["expect"]}


def sglang_pool(case: Case, beside: Beside) -> Pair:
    """Free memory before and after loading to pool tokens, request cap and state pools."""
    facts, flags, resolved = _server(case, beside)
    free = {"before": case["pre_load_free_gib"], "after": case["post_load_free_gib"]}
    capability = tuple(case["compute_capability"])
    got = sglang.pool.size_pool(SGLANG, facts, flags, resolved, capability=capability, **free)
    return case["expect"], {name: getattr(got, name, MISSING) for name in case["expect"]}


def sglang_burst(case: Case, _: Beside) -> Pair:
    """The first decode batch after idle."""
    names = ("pool_tokens", "page_size", "prompt_tokens", "max_new_tokens_effective", "chunked_prefill_size")
    pool, page, prompt, max_new, chunk = (case[name] for name in names)
    ratio, clip = parse_decimal(str(case["new_token_ratio"])), SGLANG.integer("clip_max_new_tokens")
    limits = (case["max_prefill_tokens"], ratio, case["max_running_requests"], clip, case["overlap_schedule"])
    got = sglang.burst.burst_size(pool, page, prompt, max_new, chunk, *limits)
    return case["expect"], {"running": got}


def sglang_steady_state(case: Case, _: Beside) -> Pair:
    """The law at the case's own moments: 1 % or 2.5 %, or inside the interval where requests are retracted."""
    drawn, output, expect = case["reference"], case["output_length"], case["expect"]
    moments = OutputMoments.of(mean=drawn["mean_output_tokens"], generated=drawn["mean_generated_of_running"])
    demand = steady.Demand(
        pool=case["pool_tokens"],
        page=case["page_size"],
        prompt=case["prompt_tokens"],
        max_new=case["max_new_tokens"],
        moments=moments,
        shape="fixed" if output["kind"] == "fixed" else "uniform",
        floor=parse_decimal(str(drawn["ratio_floor"])),
        chunk=case["chunked_prefill_size"],
        pass_tokens=case["max_prefill_tokens"],
        cap=case["max_running_requests"],
    )
    lockstep = output.get("first_k_uniform") is None
    state = steady.steady_state(SGLANG, demand, lockstep=lockstep, ignore_eos=case["ignore_eos"])
    ranged = expect["retracted_total"] or moments.mean >= LONG_OUTPUT
    close = 0.01 if case["page_size"] == 1 and expect["running_mean"] >= SMALL_BATCH else 0.025
    law = Within(state.mean, state.low, state.high, widest=0.25) if ranged else Within.near(state.mean, close)
    return {"running_mean": expect["running_mean"]}, {"running_mean": law}


SGLANG_HANDLERS: Handlers = {
    "sglang/memory_defaults": sglang_memory,
    "sglang/memory_variants": sglang_memory,
    "sglang/pool": sglang_pool,
    "sglang/burst": sglang_burst,
    "sglang/scheduler_steady_state": sglang_steady_state,
}
