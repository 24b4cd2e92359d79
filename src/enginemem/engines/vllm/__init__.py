"""vLLM: its budget, KV blocks, admission and CUDA graphs for one scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from enginemem.derivation import Derivation
from enginemem.engines.plan import EnginePlan, registry_problem
from enginemem.engines.vllm.admission import record_running
from enginemem.engines.vllm.budget import budget_problem, record_budget, record_requested
from enginemem.engines.vllm.costs import record_costs
from enginemem.engines.vllm.dispatch import capture_sizes, record_dispatch
from enginemem.engines.vllm.loading import record_weights
from enginemem.engines.vllm.request import record_traffic, request_problem
from enginemem.engines.vllm.resolve import class_default, resolve
from enginemem.engines.vllm.run import Run, StopPlan, not_modeled, refused
from enginemem.engines.vllm.sensitivity import at_assumption
from enginemem.engines.vllm.startup import check_state_blocks, record_pool
from enginemem.engines.vllm.steady import output_progress, record_steady
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario
from enginemem.traffic import marks_reached, mean_after_cut

RULES: Mapping[str, Callable[..., Any]] = {
    "class_default": class_default,
    "capture_sizes": capture_sizes,
    "output_mean": mean_after_cut,
    "output_progress": output_progress,
    "marks_reached": marks_reached,
}
"""The named rules that this engine's steps call beside `derivation.FUNCTIONS`."""


def plan(scenario: Scenario, release: EngineRelease) -> EnginePlan:
    """What vLLM does with the scenario's GPU memory; never raises for a valid scenario."""
    steps = Derivation(release.engine, release.sources)
    result = EnginePlan(release.engine, release.release, steps)
    try:
        _stages(Run(scenario, release, steps, result))
    except StopPlan as end:
        result.stop(end.status, end.reason)
        result.binds = end.binds
    return result


def _stages(run: Run) -> None:
    scenario, plan = run.scenario, run.plan
    model, release = scenario.model, run.release
    registry = "vllm/model_executor/models/registry.py"
    problem = registry_problem(model, engine=f"{release.name} {release.release}", registry=registry) or model.unmodeled
    if problem is not None:
        raise not_modeled(problem)
    setup = resolve(run)
    traffic = record_traffic(run, setup)
    plan.weights_bytes = record_weights(run, linear_bytes=setup.linear_bytes)
    costs = record_costs(run, setup, traffic)
    plan.kv_bytes_per_token, plan.kv_fixed_bytes_per_request = costs.parameters
    plan.kv_bytes_all_layers = costs.token_bytes
    total = scenario.gpu.cuda_total or 0
    requested = record_requested(run, total=total, utilization=setup.utilization)
    pool = record_budget(run, setup, requested=requested, weights=plan.weights_bytes, block_bytes=costs.block_bytes)
    short = budget_problem(
        total=total,
        weights=plan.weights_bytes,
        runtime=scenario.runtime,
        requested=requested,
        pool=pool,
        forced=setup.forced_blocks is not None or bool(setup.forced_bytes),
    )
    if short is not None:
        raise short
    plan.kv_pool_bytes = pool
    record_pool(run, setup, costs, pool=pool)
    check_state_blocks(run, setup, costs)
    # The server is up; only now does it see a request.
    refusal = request_problem(prompt=scenario.prompt, max_tokens=scenario.max_tokens, max_model_len=setup.max_model_len)
    if refusal is not None or traffic is None:
        raise refusal or refused("the server refuses the request")
    plan.output_limit = traffic.limit
    running = record_running(run, setup, costs, traffic, pool=pool)
    record_steady(run, setup, costs, traffic)
    record_dispatch(run, setup, running=running)


__all__ = ["RULES", "at_assumption", "plan"]
