"""SGLang: its fraction, KV pool, admission and CUDA graphs for one scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from enginemem.derivation import Derivation
from enginemem.engines.plan import EnginePlan, Sensitivity, registry_problem
from enginemem.engines.sglang.burst import burst_size
from enginemem.engines.sglang.dispatch import graph_sizes
from enginemem.engines.sglang.grant import record_budget, record_weights
from enginemem.engines.sglang.ledger import record_capacity, record_configuration
from enginemem.engines.sglang.model import facts_from_architecture
from enginemem.engines.sglang.output import output_mean, output_progress
from enginemem.engines.sglang.request import record_request
from enginemem.engines.sglang.run import Run, StopPlan, check_start, options_of, part_of
from enginemem.engines.sglang.running import (
    record_running,
    steady_mean,
)
from enginemem.engines.sglang.serve import record_dispatch, record_pool
from enginemem.engines.sglang.window import check_window_pool
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario

RULES: Mapping[str, Callable[..., Any]] = {
    "graph_sizes": graph_sizes,
    "burst": burst_size,
    "output_mean": output_mean,
    "output_progress": output_progress,
    "steady_mean": steady_mean,
}
"""The named rules that this engine's steps call beside `derivation.FUNCTIONS`."""


def plan(scenario: Scenario, release: EngineRelease) -> EnginePlan:
    """What SGLang does with the scenario's GPU memory; never raises for a valid scenario."""
    steps = Derivation(release.engine, release.sources)
    result = EnginePlan(release.engine, release.release, steps)
    try:
        _stages(Run(scenario, release, steps, result))
    except StopPlan as end:
        result.stop(end.status, end.reason)
        result.binds = end.binds
    return result


def _stages(run: Run) -> None:
    model, release = run.scenario.model, run.release
    registry = "sglang/srt/models, EntryClass of its modules"
    problem = registry_problem(model, engine=f"{release.name} {release.release}", registry=registry) or model.unmodeled
    if problem is not None:
        raise StopPlan("not_modeled", problem)
    part = part_of(run)
    options = options_of(run.scenario)
    classes = run.release.values["hybrid_window_classes"]
    text = run.release.values["multimodal_off"]
    found = facts_from_architecture(model, hybrid_classes=classes, text_classes=text)
    facts = check_start(run, found, part)
    mib = record_capacity(run, options, part)
    config = record_configuration(run, facts, options, part, mib=mib)
    run.plan.weights_bytes = record_weights(run)
    free = record_budget(run, part, facts, options, config, weight_bytes=run.plan.weights_bytes)
    server = record_pool(run, facts, options, config, free, major=part.capability[0])
    # The server is up; only now does it see a request.
    load = record_request(run, server)
    running = record_running(run, facts, config, server, load)
    check_window_pool(run, facts, config, server)
    record_dispatch(run, config, server, running=running)


def at_assumption(scenario: Scenario, release: EngineRelease, plan: EnginePlan, assumption: int) -> Sensitivity:
    """Pool, tokens and published count at a runtime memory of `assumption` bytes: the plan's own.

    SGLang sizes the pool from its fraction before anything runs; runtime memory lives in the slack.
    """
    del scenario, release
    if plan.status != "ok":
        return Sensitivity(assumption, None, None, None)
    return Sensitivity(assumption, plan.kv_pool_bytes, plan.kv_tokens, plan.running)


__all__ = ["RULES", "at_assumption", "plan"]
