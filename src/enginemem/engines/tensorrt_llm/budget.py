"""The bytes that the engine grants to the KV cache on one GPU."""

from __future__ import annotations

from enginemem.derivation import Derivation
from enginemem.encoder import AT_WORK
from enginemem.engines.tensorrt_llm.resolve import Configuration
from enginemem.units import Exact


def kv_budget_bytes(*, total_bytes: int, peak_bytes: int, tmp_kv_bytes: int, fraction: float) -> int:
    """Bytes for the KV cache: the fraction of what the profiled peak leaves, an IEEE product cut towards zero.

    `peak_bytes` holds weights, activations and everything else on the GPU during the profiling run; `tmp_kv_bytes` is
    the temporary pool of that run, which the peak counts too. Source rule: _util.py, KvCacheCreator._cal_max_memory.
    """
    return int((total_bytes - peak_bytes + tmp_kv_bytes) * fraction)


def free_bytes(*, cuda_total: Exact, weights: int, runtime: Exact, states: int) -> int:
    """Whole bytes left beside weights, runtime memory and recurrent states; the total may be a rational."""
    # One subtraction of rationals at most: they are slow.
    left = cuda_total - (weights + states + runtime)
    return left if isinstance(left, int) else left.numerator // left.denominator


def granted_bytes(*, free: int, fraction: float) -> int:
    """`kv_budget_bytes` with the peak already subtracted, bytes."""
    return kv_budget_bytes(total_bytes=free, peak_bytes=0, tmp_kv_bytes=0, fraction=fraction)


def record(
    config: Configuration,
    derivation: Derivation,
    *,
    cuda_total: Exact,
    weights: int,
    runtime: Exact,
    states: int,
    vision: bool,
) -> tuple[int, int]:
    """The budget's steps; returns the free bytes and the granted bytes (0 when nothing is free)."""
    derivation.add(
        "budget.total", "CUDA total", "total", cuda_total, "bytes", {"total": (cuda_total, "bytes")}, "peak", role="add"
    )
    derivation.add(
        "budget.weights",
        "Weights",
        "parameters",
        weights,
        "bytes",
        {"parameters": (weights, "bytes")},
        "peak",
        role="subtract",
    )
    if states:
        derivation.add(
            "budget.states",
            "Recurrent states",
            "slots",
            states,
            "bytes",
            {"slots": (states, "bytes")},
            "mamba_cache",
            role="subtract",
            note="One slot for each request of max_batch_size.",
        )
    work = f"{AT_WORK} on a dummy prompt of its own, " if vision else ""
    derivation.add(
        "budget.runtime",
        "Runtime memory beside the weights",
        "assumption",
        runtime,
        "bytes",
        {"assumption": (runtime, "bytes")},
        "peak",
        role="subtract",
        note="An assumption. The engine's profiled peak is weights and runtime memory together: activations of one "
        f"prefill of max_num_tokens, {work}CUDA context, graphs, and whatever else is on the GPU.",
    )
    free = free_bytes(cuda_total=cuda_total, weights=weights, runtime=runtime, states=states)
    derivation.add(
        "budget.free",
        "Free beside the profiled peak",
        "floor(total - weights - states - runtime)",
        free,
        "bytes",
        {
            "total": (cuda_total, "bytes"),
            "weights": (weights, "bytes"),
            "states": (states, "bytes"),
            "runtime": (runtime, "bytes"),
        },
        "peak",
    )
    if free <= 0:
        return free, 0
    granted = granted_bytes(free=free, fraction=config.fraction)
    derivation.add(
        "budget.granted",
        "KV pool per GPU",
        "int(free * fraction)",
        granted,
        "bytes",
        {"free": (free, "bytes"), "fraction": (config.fraction, "")},
        "kv_budget",
        note="A share of what is free after the peak, not of the total; the product is a double.",
    )
    derivation.add(
        "budget.left_free",
        "Left free",
        "free - granted",
        free - granted,
        "bytes",
        {"free": (free, "bytes"), "granted": (granted, "bytes")},
        "peak",
        role="limit",
        note="No other reserve exists.",
    )
    return free, granted
