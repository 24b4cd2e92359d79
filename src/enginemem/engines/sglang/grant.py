"""The reserve, the weights and the budget of one scenario, with their steps."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from enginemem.derivation import Operand
from enginemem.engines.sglang import budget as granted
from enginemem.engines.sglang.reserve import Reserve
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Part, Run, StopPlan
from enginemem.engines.sglang.weights import WIDE, weights
from enginemem.units import GIB


def record_reserve(run: Run, config: Configuration, reserve: Reserve, *, mib: int, gpus: int) -> None:
    """The parts of the reserve and the fraction that follows, each a step."""
    release, steps = run.release, run.steps
    per_token = release.number("activation_mib_per_token")
    operands: dict[str, Operand] = {
        "per_token": (per_token, "MiB a token"),
        "tokens": (config.activation_tokens, "tokens"),
    }
    steps.add(
        "reserve.activation",
        "Reserve for activations",
        "tokens * per_token",
        reserve.activation,
        "MiB",
        operands,
        "fraction",
        role="add",
    )
    operands = {
        "gpus": (gpus, "GPUs"),
        "group": (release.integer("parallel_group"), "GPUs"),
        "each": (release.integer("parallel_group_mib"), "MiB"),
    }
    steps.add(
        "reserve.parallel",
        "Reserve for parallel ranks",
        "gpus / group * each",
        reserve.parallel,
        "MiB",
        operands,
        "fraction",
        role="add",
    )
    operands = {
        "decode": (config.decode_graph_max_bs, "requests"),
        "each_decode": (release.integer("decode_graph_mib"), "MiB"),
        "prefill": (config.reserved_prefill_count, "sizes"),
        "each_prefill": (release.integer("prefill_graph_mib"), "MiB"),
    }
    steps.add(
        "reserve.graphs",
        "Reserve for CUDA graphs",
        "float(decode * each_decode + prefill * each_prefill)",
        reserve.graphs.total,
        "MiB",
        operands,
        "graph_reserve",
        role="add",
    )
    operands = {
        "base": (reserve.base, "MiB"),
        "activation": (reserve.activation, "MiB"),
        "parallel": (reserve.parallel, "MiB"),
        "graphs": (reserve.graphs.total, "MiB"),
        "capacity": (mib, "MiB"),
        "above": (release.integer("reserve_floor_above_mib"), "MiB"),
        "least": (release.integer("reserve_floor_mib"), "MiB"),
    }
    steps.add(
        "reserve.total",
        "Reserve",
        "max(base + activation + parallel + graphs, least if capacity > above else 0)",
        reserve.total,
        "MiB",
        operands,
        "fraction",
    )
    operands = {
        "capacity": (mib, "MiB"),
        "reserve": (reserve.total, "MiB"),
        "decimals": (release.integer("fraction_decimals"), ""),
    }
    steps.add(
        "resolve.fraction",
        "Static fraction",
        "round((capacity - reserve) / capacity, decimals)",
        config.mem_fraction_static,
        "",
        operands,
        "fraction",
    )


class Free(NamedTuple):
    """Free GiB before and after the weights, and the pool's bytes."""

    before: float
    after: float
    pool: int


def record_weights(run: Run) -> int:
    """Bytes of the weights on one GPU, with steps."""
    scenario, steps = run.scenario, run.steps
    held = weights(
        scenario.model,
        tp=scenario.tp,
        fp8=scenario.text("weight_dtype") == "fp8",
        vocabulary_multiple=run.release.integer("vocabulary_multiple"),
    )
    narrow = held.linear_bytes < WIDE
    operands: dict[str, Operand] = {
        "linear": (held.linear, "parameters"),
        "linear_bytes": (held.linear_bytes, "bytes each"),
        "other": (held.other, "parameters"),
        "other_bytes": (WIDE, "bytes each"),
    }
    steps.add(
        "weights.total",
        "Weights",
        "linear * linear_bytes + other * other_bytes",
        held.total,
        "bytes",
        operands,
        "weights",
        "vocabulary",
        note="embeddings, head, norms and biases stay 16-bit; scales of the FP8 matrices are not counted"
        if narrow
        else "parameters only: the engine measures the drop of free memory",
    )
    return held.total


def record_budget(run: Run, part: Part, config: Configuration, *, weight_bytes: int) -> Free:
    """The subtractions from the CUDA total to the pool, each a step; stops the plan when nothing is left."""
    steps, fraction = run.steps, config.mem_fraction_static
    preload: int | Fraction = run.scenario.preload
    gib = (GIB, "bytes a GiB")
    before = granted.as_gib(part.total - preload)
    operands: dict[str, Operand] = {"total": (part.total, "bytes"), "preload": (preload, "bytes"), "gib": gib}
    steps.add(
        "budget.before",
        "Free before loading",
        "float((total - preload) / gib)",
        before,
        "GiB",
        operands,
        "free_memory",
        role="add",
    )
    held = weight_bytes / GIB
    operands = {"weights": (weight_bytes, "bytes"), "gib": gib}
    steps.add("budget.weights", "Weights", "weights / gib", held, "GiB", operands, "weights", role="subtract")
    after = before - held
    operands = {"before": (before, "GiB"), "weights": (held, "GiB")}
    steps.add("budget.after", "Free after loading", "before - weights", after, "GiB", operands, "profile")
    if before <= 0 or after <= 0:
        raise StopPlan(
            "does_not_fit",
            f"the weights take {held:.2f} GiB and {max(before, 0.0):.2f} GiB are free: use more GPUs or a larger one",
            binds="does_not_fit",
        )
    slack = granted.slack_gib(before, fraction)
    operands = {"before": (before, "GiB"), "fraction": (fraction, "")}
    steps.add(
        "budget.slack",
        "Slack for everything after the pool",
        "before * (1 - fraction)",
        slack,
        "GiB",
        operands,
        "profile",
        role="subtract",
        note="activations, CUDA graphs, workspaces and the request table come out of the slack; the pool never shrinks",
    )
    rest = after - slack
    pool = granted.pool_bytes(rest)
    operands = {"after": (after, "GiB"), "slack": (slack, "GiB"), "gib": gib}
    steps.add("budget.pool", "KV pool", "int((after - slack) * gib)", pool, "bytes", operands, "profile")
    if rest <= 0:
        least = granted.no_memory(run.release, before, after)
        raise StopPlan(
            "does_not_fit",
            f"the loaded weights leave nothing for the KV cache at mem_fraction_static {fraction:g}: at least "
            f"{least.minimum_fraction:.4f} is needed, the engine suggests more than {least.suggested_fraction:.3f}",
            binds="does_not_fit",
        )
    return Free(before, after, pool)
