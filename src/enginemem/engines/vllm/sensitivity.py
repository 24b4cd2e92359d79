"""Pool, tokens and running requests at another value of the runtime assumption, without steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from enginemem.engines.plan import EnginePlan, Sensitivity
from enginemem.engines.vllm.admission import published_running, published_running_by_blocks
from enginemem.engines.vllm.budget import available_bytes, budget_problem
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario


def at_assumption(scenario: Scenario, _release: EngineRelease, plan: EnginePlan, assumption: int) -> Sensitivity:
    """The published figures when the runtime memory is `assumption` bytes; None where the plan would not be ok.

    Reads what the assumption does not touch from the steps of `plan`, which is the scenario's own plan.
    """
    nothing = Sensitivity(assumption, None, None, None)
    values: dict[str, Any] = plan.derivation.values
    states = "layout.state_bytes" in values
    # More memory can settle the refusal for want of state blocks, the only one that comes after the pool.
    final = plan.status == "refused" and not (states and "pool.tokens_logged" in values)
    if final or plan.status == "not_modeled" or plan.weights_bytes is None or scenario.gpu.cuda_total is None:
        return nothing
    if "layout.mean_context" not in values:
        return nothing  # the server refuses the request, whatever the memory
    block, longest = values["layout.block_bytes"], values["layout.longest_blocks"]
    pool, forced = _pool(plan, values, assumption)
    problem = budget_problem(
        total=scenario.gpu.cuda_total,
        weights=plan.weights_bytes,
        runtime=assumption,
        requested=values["budget.requested"],
        pool=pool,
        forced=forced,
    )
    if problem is not None or (longest + 1) * block > pool:
        return nothing
    cap: Any = plan.resolved["max_num_seqs"].value
    if states and cap > pool // block:
        return nothing
    if "layout.context_blocks" in values:
        blocks: Fraction = values["layout.context_blocks"]
        running = published_running_by_blocks(pool=pool, block_bytes=block, context_blocks=blocks, request_cap=cap)
        return Sensitivity(assumption, pool, None, running)
    tokens = int(pool // values["layout.token_bytes"])
    context: Fraction = values["layout.mean_context"]
    return Sensitivity(assumption, pool, tokens, published_running(tokens=tokens, context=context, request_cap=cap))


def _pool(plan: EnginePlan, values: dict[str, Any], assumption: int) -> tuple[int, bool]:
    """The pool in bytes, and whether it was given outright."""
    for knob, unit in (("num_gpu_blocks_override", values["layout.block_bytes"]), ("kv_cache_memory_bytes", 1)):
        given: Any = plan.resolved[knob].value if knob in plan.resolved else None
        if given:
            return given * unit, True
    requested: int = values["budget.requested"]
    return available_bytes(requested=requested, weights=plan.weights_bytes or 0, runtime=assumption), False
