"""Run vector files against the product: `python tests/conformance.py FILE...`.

A file is told apart by its `set`. Every expected field of every case is compared; each difference is printed as
expected/got, and the last line is `N passed, M failed` (exit status 1 on any failure). An unknown set, a file without
cases and a field that the product cannot produce are failures. This module maps fields to public functions and
holds no arithmetic. Companion files (models, shapes) are looked for beside FILE, then in tests/vectors/.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent / "src"))  # runs from a bare checkout, on any Python at hand

from enginemem import Scenario, compare
from enginemem.architecture import LayerKind, LayerSpec
from enginemem.engines import sglang, vllm
from enginemem.engines import tensorrt_llm as trt
from enginemem.engines.sglang import model, options, steady
from enginemem.engines.tensorrt_llm import maxima, steps, temporary
from enginemem.engines.vllm import defaults
from enginemem.release import load_release
from enginemem.traffic import OutputMoments
from enginemem.units import parse_decimal, parse_quantity
from enginemem.worked import computed_figures, shared_figures
from vector_runner import MISSING, Beside, Case, Handlers, NotSteady, Pair, Within, run_files

VLLM, SGLANG, TRT = load_release("vllm"), load_release("sglang"), load_release("tensorrt-llm")
TRT_BLOCK = TRT.integer("tokens_per_block")


def worked(case: Case, beside: Beside) -> Pair:
    """The published comparisons, through the same inputs that a person would give."""
    common, given = beside("worked.json")["common_inputs"], case["input"]
    scenario = Scenario(
        model=common["model"],
        cuda_total=f"{common['cuda_total_gib']}GiB",
        smi_total=f"{common['nvidia_smi_capacity_mib']}MiB",
        tp=common["tp"],
        runtime=common["runtime_bytes"],
        preload=common["in_use_before_load_bytes"],
        prompt=given["prompt_tokens"],
        max_tokens=given["max_tokens"],
        mean_output=given["mean_output_tokens"],
        kv_dtype={1: "fp8", 2: "bf16"}[given["kv_element_bytes"]],
    )
    comparison = compare(scenario)
    got = {column.replace("-", "_"): computed_figures(plan) for column, plan in comparison.engines.items()}
    keys = ("kv_bytes_per_token", "mean_context_tokens", "prefill_ms_printed", "engines")
    return {key: case[key] for key in keys}, {**shared_figures(comparison), "engines": got}


LONG_OUTPUT, SMALL_BATCH = 1000, 50
GRAPH_INPUTS = "id gpu compute_capability max_num_seqs max_num_batched_tokens budget_set_by_user num_speculative_tokens"
DEFAULT_INPUTS = "id gpu device_name compute_capability nvml_total_MiB usage_context model model_max_len"
CLASSES = {"llama-3.1-8b": "LlamaForCausalLM", "gpt-oss-20b": "GptOssForCausalLM"}


def _expected(case: Case, inputs: str) -> Case:
    return {name: value for name, value in case.items() if name not in inputs.split()}


def _capability(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _in_flight(case: Case, asynchronous: bool = True) -> int:
    extra = VLLM.integer("in_flight_extra_batches") if asynchronous else 0
    stages = case.get("pipeline_parallel", 1)
    budget = case["max_num_batched_tokens"]
    return vllm.layout.max_in_flight_tokens(
        pipeline_parallel=stages, max_num_batched_tokens=budget, extra_batches=extra
    )


def vllm_kv_sizing(case: Case, _: Beside) -> Pair:
    """Layer rows and memory to blocks, groups, logged tokens, or the start-up error."""
    names = ("available_bytes", "max_model_len", "decode_context_parallel", "num_gpu_blocks_override")
    given = {name: case[name] for name in (*names, "auto_max_model_len", "prefix_caching")}
    ranks = [[vllm.layout.KvRow.of(**row) for row in rank] for rank in case["ranks"]]
    got = vllm.pool.size_kv_cache(ranks=ranks, in_flight=_in_flight(case), **given)
    if isinstance(got, vllm.pool.KvPool):
        return case.get("expect", {"kind": case.get("expect_error")}), vllm.pool.as_fields(got)
    wanted: Case = case.get("expect_error") or case["expect"]
    return wanted, {name: value for name, value in got._asdict().items() if name in wanted or value is not None}


def vllm_graph_capture(case: Case, _: Beside) -> Pair:
    """Capture lists."""
    sizes = vllm.dispatch.decode_capture_sizes(
        VLLM,
        family=_capability(case["compute_capability"])[0],
        max_num_seqs=case["max_num_seqs"],
        max_num_batched_tokens=case["max_num_batched_tokens"],
        num_speculative_tokens=case["num_speculative_tokens"],
    )
    got = {"sizes": list(sizes), "num_sizes": len(sizes), "max_cudagraph_capture_size": sizes[-1]}
    got["cudagraph_mode"] = VLLM.values["cudagraph_mode"]
    return _expected(case, GRAPH_INPUTS), got


def vllm_default_values(case: Case, _: Beside) -> Pair:
    """Defaults by GPU and usage context."""
    got = defaults.engine_defaults(
        VLLM,
        nvml_total=parse_quantity(f"{case['nvml_total_MiB']}MiB"),
        device_name=case["device_name"],
        compute_capability=_capability(case["compute_capability"]),
        max_model_len=case["model_max_len"],
        class_name=CLASSES[case["model"]],
        usage=case["usage_context"],
    )._asdict()
    return _expected(case, DEFAULT_INPUTS), got


def vllm_steady_state(case: Case, _: Beside) -> Pair:
    """The law at the case's own drawn moments, within 2 %."""
    names = ("num_blocks", "max_num_seqs", "max_num_batched_tokens", "watermark")
    limits = vllm.admission.steady_limits(
        [vllm.layout.KvRow.of(**group) for group in case["kv_groups"]],
        prompt=case["prompt_tokens"],
        mean_output=case["drawn_mean_output"],
        progress=case["drawn_length_biased_progress"],
        in_flight=_in_flight(case, case["async_scheduling"]),
        prefill_steps=VLLM.integer("steady_prefill_steps"),
        **{name: case[name] for name in names},
    )
    state = vllm.admission.steady_state(
        limits, VLLM, prompt=case["prompt_tokens"], mean_output=case["mean_output_tokens"]
    )
    if not case["steady"]:
        raise NotSteady(f"still a transient: measured {case['mean_running']}, law {state.mean:.2f}")
    return {"mean_running": case["mean_running"]}, {"mean_running": Within.near(state.mean, 0.02)}


def _layers(shape: Case) -> tuple[LayerSpec, ...]:
    width = shape.get("mla_dim") or shape["head_dim"]
    kind: LayerKind = "mla" if "mla_dim" in shape else "full"
    return (LayerSpec(kind, shape["layers"], shape.get("kv_heads", 1), width, 0 if kind == "mla" else width),)


def trt_kv_pool(case: Case, _: Beside) -> Pair:
    """Budget to blocks, in the order of the limits."""
    given = {key: value for key, value in case["input"].items() if key not in ("model", "shape", "kv_dtype")}
    given["kv_format"] = trt.layout.kv_format(TRT, case["input"]["kv_dtype"])
    got = trt.pool.kv_pool(_layers(case["input"]["shape"]), tokens_per_block=TRT_BLOCK, **given)._asdict()
    printed = got["printed_bytes_per_token"]
    return case["output"], got | {"printed_bytes_per_token": printed if isinstance(printed, int) else str(printed)}


def trt_admit(case: Case, _: Beside) -> Pair:
    """Reservation and running count; refusals are refused."""
    got = trt.admission.admit(tokens_per_block=TRT_BLOCK, **case["input"])
    refused = isinstance(got, trt.admission.Refused)
    return case.get("output", {"error": True}), {"error": True} if refused else got._asdict()


def trt_graphs(case: Case, _: Beside) -> Pair:
    """Captured sizes and which batch replays."""
    given = dict(case["input"])
    padding = given.pop("enable_padding")
    base = trt.dispatch.base_sizes(TRT, padding=padding)
    largest = given.pop("cuda_graph_max_batch_size")
    sizes = trt.dispatch.decode_capture_sizes(base, largest=largest, padding=padding, **given)
    table = case["output"]["batches"]
    rows = [
        [batch, context, trt.dispatch.graph_size(batch, sizes=sizes, padding=padding, has_context_request=context)]
        for batch, context, _ in table["rows"]
    ]
    return case["output"], {"sizes": list(sizes), "batches": {"columns": table["columns"], "rows": rows}}


def trt_temporary_pool(case: Case, _: Beside) -> Pair:
    """Blocks of the pool of the dry run."""
    return case["output"], {"blocks": temporary.temporary_pool_blocks(tokens_per_block=TRT_BLOCK, **case["input"])}


def trt_steps(case: Case, _: Beside) -> Pair:
    """The two schedulers, step by step."""
    given = dict(case["input"])
    requests = [steps.Request(*row) for row in given.pop("requests")["rows"]]
    rows = steps.scheduler_steps(requests, tokens_per_block=TRT_BLOCK, **given)
    return case["output"], {"columns": list(steps.StepRow._fields), "rows": [list(row) for row in rows]}


SHAPES = {"Qwen3-32B-FP8": {"layers": 64, "kv_heads": 8, "head_dim": 128}}
SHAPES["Llama-3.1-8B"] = {"layers": 32, "kv_heads": 8, "head_dim": 128}


def trt_measured_maxima(case: Case, _: Beside) -> Pair:
    """One number of free bytes explains every published maximum of a group."""
    rows = [maxima.MeasuredMaximum(*row[2:]) for row in case["rows"]]
    format_ = trt.layout.kv_format(TRT, "bf16")
    layers = _layers(SHAPES[case["rows"][0][1]])
    free = maxima.explaining_free_bytes(rows, layers, kv_format=format_, tokens_per_block=TRT_BLOCK)
    return {"explained": True}, {"explained": free is not None}


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


HANDLERS: Handlers = {
    "worked/worked": worked,
    "vllm/kv_sizing": vllm_kv_sizing,
    "vllm/graph_capture": vllm_graph_capture,
    "vllm/defaults": vllm_default_values,
    "vllm/scheduler_steady_state": vllm_steady_state,
    "sglang/memory_defaults": sglang_memory,
    "sglang/memory_variants": sglang_memory,
    "sglang/pool": sglang_pool,
    "sglang/burst": sglang_burst,
    "sglang/scheduler_steady_state": sglang_steady_state,
    "tensorrt_llm/pool": trt_kv_pool,
    "tensorrt_llm/admission": trt_admit,
    "tensorrt_llm/graphs": trt_graphs,
    "tensorrt_llm/temporary_pool": trt_temporary_pool,
    "tensorrt_llm/steps": trt_steps,
    "tensorrt_llm/measured_maxima": trt_measured_maxima,
}


if __name__ == "__main__":
    sys.exit(run_files(sys.argv[1:], HANDLERS, companions=ROOT / "vectors"))
