"""vLLM's vector files: fields to public functions, no arithmetic."""

from __future__ import annotations

from enginemem import Architecture
from enginemem.engines import vllm
from enginemem.engines.vllm import defaults, real_model
from enginemem.release import load_release
from enginemem.units import parse_quantity
from vector_runner import Beside, Case, Handlers, NotSteady, Pair, Within

VLLM = load_release("vllm")
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


def _config(shape: Case) -> Case:
    """The shape as a configuration: the class as a list, layer types spelled out."""
    kinds = {"S": "sliding_attention", "F": "full_attention"}
    config = {name: value for name, value in shape.items() if name != "architecture"}
    if "layer_types" in config:
        config["layer_types"] = [kinds[letter] for letter in config["layer_types"]]
    return {**config, "architectures": [shape["architecture"]]}


def _facts(model: Architecture) -> Case:
    """The facts of a model under the names of the configuration's fields; what merely shapes tensors (intermediate
    sizes of experts, biases, rotary factors) shows in the bytes of `real_models`."""
    first = next(spec for spec in model.layers if spec.kind not in ("recurrent", "none"))
    state = next((spec.recurrent for spec in model.layers if spec.recurrent is not None), None)
    letters = {"sliding": "S", "full": "F"}
    facts: Case = {
        "architecture": model.class_name,
        "model_type": model.model_type,
        "hidden_size": model.hidden_size,
        "intermediate_size": model.intermediate_size,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "vocab_size": model.vocabulary,
        "max_position_embeddings": model.max_position,
        "tie_word_embeddings": model.tied_embeddings,
        "kv_lora_rank": model.latent_rank,
        "index_head_dim": first.index_head,
        "sliding_window": next((spec.window for spec in model.layers if spec.window is not None), None),
        "layer_types": "".join([letters.get(spec.kind, "?") * spec.layers for spec in model.layers]),
    }
    if model.experts is not None:
        totals = dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), model.experts.total)
        facts |= totals | {"num_experts_per_tok": model.experts.active}
    if state is not None and state.mixer == "gdn":
        facts |= {
            "linear_num_value_heads": state.heads,
            "linear_key_head_dim": state.columns,
            "linear_value_head_dim": state.rows,
            "linear_conv_kernel_dim": state.kernel,
        }
    if state is not None and state.mixer == "mamba2":
        facts |= {
            "mamba_num_heads": state.heads,
            "mamba_head_dim": state.rows,
            "ssm_state_size": state.columns,
            "n_groups": state.groups,
            "conv_kernel": state.kernel,
        }
    return facts


def vllm_model_shapes(case: Case, _: Beside) -> Pair:
    """Each shape parses, and gives the facts that stand in it."""
    got = _facts(Architecture.from_hf_config(_config({name: value for name, value in case.items() if name != "id"})))
    return {name: value for name, value in case.items() if name in got}, got


GIVEN = [
    "id",
    "model",
    "gpu",
    "tensor_parallel",
    "pipeline_parallel",
    "expert_parallel",
    "engine_args",
    "backend_authoritative",
]
INPUTS = ("total_bytes", "gpu_memory_utilization", "runtime_bytes_assumed")


def vllm_real_models(case: Case, beside: Beside) -> Pair:
    """Parameter and buffer bytes, defaults and KV plan of real model classes."""
    shape = beside("model_shapes.json")["models"][case["model"]]
    wanted = {name: value for name, value in case.items() if name not in (*GIVEN, *INPUTS)}
    block = None
    if not case["backend_authoritative"]:
        # The run chose another backend than a real machine would: its block size is an input, not a result.
        del wanted["attention_backends"]
        plan = case.get("expect") or case["expect_with_auto_max_model_len"]
        block = min([group["block_size"] for group in plan["groups"]])
    request = real_model.Request(
        gpu=case["gpu"],
        total_bytes=case["total_bytes"],
        utilization=case["gpu_memory_utilization"],
        runtime=case["runtime_bytes_assumed"],
        tp=case["tensor_parallel"],
        pp=case["pipeline_parallel"],
        whole_experts=case["expert_parallel"],
        arguments=case["engine_args"],
        block_size=block,
    )
    return wanted, real_model.built(VLLM, Architecture.from_hf_config(_config(shape)), request)


VLLM_HANDLERS: Handlers = {
    "vllm/kv_sizing": vllm_kv_sizing,
    "vllm/graph_capture": vllm_graph_capture,
    "vllm/defaults": vllm_default_values,
    "vllm/scheduler_steady_state": vllm_steady_state,
    "vllm/model_shapes": vllm_model_shapes,
    "vllm/real_models": vllm_real_models,
}
