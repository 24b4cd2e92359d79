"""Where the bytes of one GPU go under each engine: weights, runtime memory, recurrent states beside the pool, KV pool,
and what stays outside of all."""

from __future__ import annotations

from typing import Literal, NamedTuple

from enginemem.comparison import Comparison
from enginemem.engines.plan import EnginePlan
from enginemem.scenario import Scenario
from enginemem.units import Exact

PartKind = Literal["weights", "runtime", "states", "kv_pool", "unused"]


class Part(NamedTuple):
    """One share of the GPU's memory, bytes. `label` says what this engine does with it."""

    kind: PartKind
    label: str
    bytes: Exact


class MemoryMap(NamedTuple):
    """The shares of one engine in the order of the bar; `over` is what they exceed `total` by, 0 where they fit."""

    engine: str
    total: Exact
    parts: tuple[Part, ...]
    over: Exact


_ASSUMED = {"sglang": ("preload", "before load, assumed")}
_UNUSED = {
    "vllm": "outside its budget",
    "sglang": "for activations, graphs",
    "tensorrt-llm": "left free",
}


def memory_map(scenario: Scenario, plan: EnginePlan) -> MemoryMap | None:
    """The shares of one plan; None where the GPU's total or the weights are unknown.

    A plan that does not fit has no pool: weights and runtime memory stand against the total.
    """
    total = scenario.gpu.cuda_total
    if total is None or plan.weights_bytes is None:
        return None
    key, label = _ASSUMED.get(plan.engine, ("runtime", "runtime, assumed"))
    assumed = scenario.quantity(key) or 0
    pool = plan.kv_pool_bytes or 0
    # vLLM keeps recurrent states in the pool's own blocks; the others beside it.
    found = plan.derivation.values.get("budget.states")
    states = found if isinstance(found, int) and pool else 0
    left = total - plan.weights_bytes - assumed - states - pool
    parts = [
        Part("weights", "weights", plan.weights_bytes),
        Part("runtime", label, assumed),
        Part("states", "recurrent states", states),
        Part("kv_pool", "KV pool", pool),
        Part("unused", _UNUSED[plan.engine] if pool else "no pool", max(left, 0)),
    ]
    return MemoryMap(plan.engine, total, tuple([part for part in parts if part.bytes > 0]), max(-left, 0))


def memory_maps(comparison: Comparison) -> dict[str, MemoryMap]:
    """The memory map of every engine that has one, by column."""
    found = {column: memory_map(comparison.scenario, plan) for column, plan in comparison.engines.items()}
    return {column: shares for column, shares in found.items() if shares is not None}


def common_scale(maps: dict[str, MemoryMap]) -> Exact:
    """The bytes that the longest bar stands for, so that every engine is drawn to one scale."""
    return max([shares.total + shares.over for shares in maps.values()], default=0)
