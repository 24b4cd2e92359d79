"""The bytes that the engine grants to the KV cache on one GPU.

Source rules: `request_memory` in `vllm/v1/worker/utils.py`, `Worker.determine_available_memory` in
`vllm/v1/worker/gpu_worker.py` at 0.32.0. The activation peak, the graph estimate and everything else that grows beside
the weights come in as one number, the runtime assumption.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from enginemem.derivation import Operand
from enginemem.encoder import AT_WORK
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run, StopPlan, does_not_fit, refused
from enginemem.units import Exact, gb


def requested_bytes(total: Exact, utilization: float) -> int:
    """What the engine asks for of a GPU of `total` bytes: the product in floating point, rounded up."""
    return ceil(float(total) * utilization)


def available_bytes(*, requested: int, weights: int, runtime: Exact) -> int:
    """What profiling leaves for the KV cache, possibly negative."""
    return floor(requested - weights - runtime)


def budget_problem(
    *, total: Exact, weights: int, runtime: Exact, requested: int, pool: int, forced: bool
) -> StopPlan | None:
    """Why a pool of `pool` bytes cannot be had beside the weights and the runtime memory, or None.

    A pool that is given outright skips the budget, but not the GPU: its allocation fails.
    """
    if weights >= total:
        return does_not_fit(f"weights of {gb(weights)} per GPU, and the GPU has {gb(total)}")
    if forced and pool + weights + runtime > total:
        return does_not_fit(
            f"a KV cache of {gb(pool)} beside weights of {gb(weights)} and runtime memory of {gb(runtime)} is more "
            f"than the GPU's {gb(total)}"
        )
    if pool <= 0:
        return does_not_fit(
            f"weights of {gb(weights)} and runtime memory of {gb(runtime)} use up the {gb(requested)} that the engine "
            "asks for: no memory is left for the KV cache"
        )
    return None


def record_requested(run: Run, *, total: Exact, utilization: float) -> int:
    """Record the requested memory; raises StopPlan when it is the whole GPU, of which the CUDA context holds a part."""
    requested = requested_bytes(total, utilization)
    run.steps.add(
        "budget.requested",
        "Requested memory",
        "ceil(float(total) * utilization)",
        requested,
        "bytes",
        {"total": (total, "bytes"), "utilization": (utilization, "")},
        "request_memory",
        "cache_config",
        note="The engine refuses to start when less is free once the CUDA context is up.",
    )
    if requested >= total:
        raise refused(
            "this gpu_memory_utilization asks for the whole GPU, of which the CUDA context already holds a part: lower it"
        )
    return requested


def record_budget(run: Run, setup: Setup, *, requested: int, weights: int, block_bytes: int) -> int:
    """Record the KV pool in bytes: what the budget leaves, or what the user gave outright."""
    steps, runtime = run.steps, run.scenario.runtime
    if setup.forced_blocks is not None:
        pool = setup.forced_blocks * block_bytes
        steps.add(
            "budget.pool",
            "KV pool per GPU",
            "blocks * block_bytes",
            pool,
            "bytes",
            {"blocks": (setup.forced_blocks, "blocks"), "block_bytes": (block_bytes, "bytes")},
            "blocks",
            note="Given as blocks: the budget does not enter.",
        )
        return pool
    if setup.forced_bytes:
        steps.add(
            "budget.pool",
            "KV pool per GPU",
            "given",
            setup.forced_bytes,
            "bytes",
            {"given": (setup.forced_bytes, "bytes")},
            "available_memory",
            note="Given outright: the share of the GPU and the runtime memory do not enter.",
        )
        return setup.forced_bytes
    steps.add(
        "budget.weights",
        "Weights",
        "parameters",
        weights,
        "bytes",
        {"parameters": (weights, "bytes")},
        "available_memory",
        role="subtract",
    )
    # The profile run sends the largest images (or videos) of a step through the encoder first.
    work = f"{AT_WORK} on its largest inputs, " if run.scenario.model.vision is not None else ""
    steps.add(
        "budget.runtime",
        "Runtime memory",
        "assumption",
        runtime,
        "bytes",
        {"assumption": (runtime, "bytes")},
        *(("runtime", "encoder_profile") if work else ("runtime",)),
        role="subtract",
        note=f"An assumption: activation peak, {work}graphs and buffers, without the CUDA context.",
    )
    pool = available_bytes(requested=requested, weights=weights, runtime=runtime)
    operands: dict[str, Operand] = {
        "requested": (requested, "bytes"),
        "weights": (weights, "bytes"),
        "runtime": (runtime, "bytes"),
    }
    whole = not isinstance(runtime, Fraction)
    steps.add(
        "budget.pool",
        "KV pool per GPU",
        "requested - weights - runtime" if whole else "floor(requested - weights - runtime)",
        pool,
        "bytes",
        operands,
        "available_memory",
    )
    return pool
