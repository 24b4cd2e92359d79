"""TensorRT-LLM's vector files: fields to public functions, no arithmetic."""

from __future__ import annotations

from enginemem.architecture import LayerKind, LayerSpec
from enginemem.engines import tensorrt_llm as trt
from enginemem.engines.tensorrt_llm import maxima, steps, temporary
from enginemem.release import load_release
from vector_runner import Beside, Case, Handlers, Pair

TRT = load_release("tensorrt-llm")
TRT_BLOCK = TRT.integer("tokens_per_block")


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


TRT_HANDLERS: Handlers = {
    "tensorrt_llm/pool": trt_kv_pool,
    "tensorrt_llm/admission": trt_admit,
    "tensorrt_llm/graphs": trt_graphs,
    "tensorrt_llm/temporary_pool": trt_temporary_pool,
    "tensorrt_llm/steps": trt_steps,
    "tensorrt_llm/measured_maxima": trt_measured_maxima,
}
