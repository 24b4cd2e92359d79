"""The floors of a plan at its batch: decode step, aggregate output and prefill, each with its step."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from enginemem.derivation import Source
from enginemem.engines.plan import EnginePlan
from enginemem.hardware import load_gpu
from enginemem.roofline import decode_step_seconds, kv_tokens_read, prefill_seconds, weight_bytes_read
from enginemem.scenario import Scenario
from enginemem.units import Exact


def add_floors(scenario: Scenario, plan: EnginePlan) -> None:
    """Fill in the plan's decode floor, output ceiling and prefill floor where the data allow, with their steps."""
    if plan.weights_bytes is None:
        return
    _add_prefill(scenario, plan)
    if scenario.gpu.bandwidth is not None and plan.running and plan.kv_bytes_all_layers is not None:
        # Decoding leaves the vision encoder alone.
        encoder = plan.derivation.values.get("weights.vision", 0)
        read = plan.weights_bytes - (encoder if isinstance(encoder, int) else 0)
        _add_decode(scenario, plan, bandwidth=scenario.gpu.bandwidth, weights=read)


@cache
def hardware_source(gpu_id: str, key: str) -> Source:
    """The hardware table's record `key` of a part, as the source of a floor."""
    record = load_gpu(gpu_id).records[key]
    title = f"hardware table, {gpu_id} {key}: {record['source']}"
    return Source("document", "", None, None, None, title, None, record["checked"], "unverified")


def mean_context(scenario: Scenario, plan: EnginePlan) -> Exact:
    """Tokens of context that a running request holds on average: the prompt and half the mean output.

    The mean output is at most what the engine's own clip of max_tokens leaves.
    """
    mean = scenario.mean_output if plan.output_limit is None else min(scenario.mean_output, plan.output_limit)
    doubled = 2 * scenario.prompt + mean
    return Fraction(doubled, 2) if doubled % 2 else doubled // 2


def _add_decode(scenario: Scenario, plan: EnginePlan, *, bandwidth: int, weights: int) -> None:
    model, running, per_token = scenario.model, plan.running or 0, plan.kv_bytes_all_layers or 0
    context = kv_tokens_read(model.layers, mean_context(scenario, plan))
    experts = model.experts
    expert_bytes = 0
    if experts is not None:
        expert_bytes = experts.total * experts.layers * experts.parameters_each * weights // model.parameters
    read = weight_bytes_read(weights=weights, expert_bytes=expert_bytes, experts=experts, batch=running)
    step = decode_step_seconds(
        weight_bytes=read, running=running, context=context, kv_bytes_per_token=per_token, bandwidth=bandwidth
    )
    plan.decode_step_seconds = step
    plan.output_tokens_per_second = Fraction(running * step.denominator, step.numerator)
    plan.derivation.add(
        "roofline.decode_step",
        "Decode step, floor at full bandwidth",
        "Fraction(weights + running * context * kv_bytes) / bandwidth",
        step,
        "s",
        {
            "weights": (read, "bytes"),
            "running": (running, "requests"),
            "context": (context, "tokens"),
            "kv_bytes": (per_token, "bytes/token"),
            "bandwidth": (bandwidth, "B/s"),
        },
        hardware_source(scenario.gpu.id, "memory_bandwidth"),
        note="Weights and KV are read once, context = prompt + half the mean output; nothing else is counted.",
    )
    plan.derivation.add(
        "roofline.output",
        "Aggregate output, ceiling",
        "running / step",
        plan.output_tokens_per_second,
        "tokens/s",
        {"running": (running, "requests"), "step": (step, "s")},
        hardware_source(scenario.gpu.id, "memory_bandwidth"),
    )


def _add_prefill(scenario: Scenario, plan: EnginePlan) -> None:
    peaks = scenario.gpu.dense_peaks
    kind = "fp8" if scenario.text("weight_dtype") == "fp8" and peaks["fp8"] is not None else "bf16"
    if peaks[kind] is None:
        kind = "fp16"  # a part without BF16 units runs a 16-bit checkpoint in FP16
    peak = peaks[kind]
    if peak is None:
        return
    active = scenario.model.active_parameters
    plan.prefill_seconds = prefill_seconds(
        active_parameters=active, prompt=scenario.prompt, tp=scenario.tp, dense_peak=peak
    )
    plan.derivation.add(
        "roofline.prefill",
        f"Prefill of one prompt, floor at the dense {kind.upper()} peak",
        "Fraction(2 * parameters * prompt, tp * peak)",
        plan.prefill_seconds,
        "s",
        {
            "parameters": (active, "parameters"),
            "prompt": (scenario.prompt, "tokens"),
            "tp": (scenario.tp, "GPUs"),
            "peak": (peak, "FLOP/s"),
        },
        hardware_source(scenario.gpu.id, f"{kind}_dense"),
    )
