"""TensorRT-LLM, PyTorch backend: what the engine grants to the KV cache, and how many requests it lets run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from enginemem.derivation import Derivation
from enginemem.engines.plan import EnginePlan, Sensitivity
from enginemem.engines.tensorrt_llm import admission, budget, dispatch, layout, pool, steady, temporary, weights
from enginemem.engines.tensorrt_llm.resolve import Configuration, configuration_of, resolve, unsupported
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario
from enginemem.traffic import mean_after_cut, output_moments
from enginemem.units import Exact, gb, requests

RULES: Mapping[str, Callable[..., Any]] = {
    "element_bytes": layout.element_bytes,
    "printed_bytes": layout.printed_bytes,
    "temporary_pool_blocks": temporary.temporary_pool_blocks,
    "mean_output": mean_after_cut,
    "mean_running": steady.mean_running,
    "capture_sizes": dispatch.capture_sizes,
    "filtered_sizes": dispatch.filtered_sizes,
    "graph_size": dispatch.graph_size,
}
"""Named rules that the expressions of this engine's steps call, beside derivation.FUNCTIONS."""

_SHARE_TOO_LARGE = "the free_gpu_memory_fraction must be below {bound:g}: an assertion stops the start-up"


def plan(scenario: Scenario, release: EngineRelease) -> EnginePlan:
    """The plan of `scenario` under `release`, every figure with its step."""
    derivation = Derivation(release.engine, release.sources)
    result = EnginePlan(release.engine, release.release, derivation)
    problem = unsupported(scenario, release)
    if problem is not None:
        return result.stop("not_modeled", problem.reason)
    config = resolve(scenario, release, result, derivation)
    result.step_token_budget = config.max_num_tokens
    result.page_tokens = config.tokens_per_block
    sizes = dispatch.record(config, release, result, derivation)
    result.weights_bytes = weights.record(
        scenario.model, release, derivation, tp=scenario.tp, weight_dtype=scenario.text("weight_dtype")
    )
    total = scenario.gpu.cuda_total
    if total is None:
        return result.stop("not_modeled", f"the CUDA total of {scenario.gpu.name} is not known: give cuda_total")
    if config.fraction >= release.number("fraction_below"):
        return result.stop("refused", _SHARE_TOO_LARGE.format(bound=release.number("fraction_below")))
    if not _pool(scenario, release, config, result=result, derivation=derivation, total=total):
        return result
    return _admission(scenario, release, config, result=result, derivation=derivation, sizes=sizes)


def _states(scenario: Scenario, release: EngineRelease, config: Configuration, *, slots: int | None = None) -> int:
    """Bytes of recurrent states on one GPU in so many slots, by default all that are allocated."""
    return layout.recurrent_state_bytes(
        scenario.model.layers,
        tp=scenario.tp,
        slots=config.max_batch_size if slots is None else slots,
        state_bytes=release.integer("state_bytes"),
    )


def _pool(
    scenario: Scenario,
    release: EngineRelease,
    config: Configuration,
    *,
    result: EnginePlan,
    derivation: Derivation,
    total: Exact,
) -> bool:
    """Budget and pool; False when the plan ends here."""
    own = result.weights_bytes or 0
    states = _states(scenario, release, config)
    free, granted = budget.record(
        config,
        derivation,
        cuda_total=total,
        weights=own,
        runtime=scenario.runtime,
        states=states,
        vision=scenario.model.vision is not None,
    )
    if free <= 0:
        slots = f", recurrent states of {gb(states)} for {requests(config.max_batch_size)}" if states else ""
        needed = f"weights of {gb(own)}{slots} and runtime memory of {gb(scenario.runtime)}"
        advice = ": lower tensorrt-llm.max_batch_size" if states and own + scenario.runtime < total else ""
        result.stop("does_not_fit", f"{needed} leave nothing of the GPU's {gb(total)}{advice}")
        return False
    kv_format = layout.kv_format(release, config.kv_dtype)
    layout.record(scenario.model.layers, derivation, tp=scenario.tp)
    found = pool.record(
        scenario.model.layers, config, kv_format, derivation, tp=scenario.tp, free=free, granted=granted
    )
    result.kv_pool_bytes = granted
    result.kv_bytes_per_token = result.kv_bytes_all_layers = found.per_token
    slot = _states(scenario, release, config, slots=1)
    result.kv_fixed_bytes_per_request = pool.record_parameters(derivation, found, state=slot)
    result.blocks = found.blocks
    result.kv_tokens = result.kv_tokens_logged = found.tokens
    pool.record_log(derivation, found)
    temporary.record(
        config, release, derivation, free=free, estimate=found.estimate, largest=result.largest_decode_graph or 0
    )
    if found.blocks == 0:
        result.stop("does_not_fit", f"a KV pool of {gb(granted)} holds no block of {config.tokens_per_block} tokens")
        return False
    size = pool.printed_gib(pool_tokens=found.tokens, printed_bytes_per_token=found.printed)
    result.log_line = f"[MemUsageChange] Allocated {size} GiB for max tokens in paged KV cache ({found.tokens})."
    return True


def _admission(
    scenario: Scenario,
    release: EngineRelease,
    config: Configuration,
    *,
    result: EnginePlan,
    derivation: Derivation,
    sizes: tuple[int, ...],
) -> EnginePlan:
    """Refusals, the running count, its steady state, and the graph of that batch."""
    blocks, length, prompt = result.blocks or 0, min(config.max_seq_len, result.kv_tokens or 0), scenario.prompt
    refused = admission.refusal(
        prompt=prompt,
        max_num_tokens=config.max_num_tokens,
        max_seq_len=length,
        chunked_prefill=config.chunked_prefill,
        tokens_per_block=config.tokens_per_block,
    )
    if refused is not None:
        result.binds = "prompt_limit"
        return result.stop("refused", refused.reason)
    output = min(scenario.max_tokens, length - prompt)
    derivation.add(
        "admission.output_limit",
        "Output limit of a request",
        "min(max_tokens, max_seq_len - prompt)",
        output,
        "tokens",
        {
            "max_tokens": (scenario.max_tokens, "tokens"),
            "max_seq_len": (length, "tokens"),
            "prompt": (prompt, "tokens"),
        },
        "output_room",
        role="limit",
        note="Clipped with a warning to the room that the prompt leaves." if output < scenario.max_tokens else None,
    )
    result.output_limit = output
    moments = output_moments(shape=scenario.shape, mean=scenario.mean_output, limit=output)
    derivation.add(
        "traffic.mean_output",
        "Mean output after the cut",
        "mean_output(shape, mean, limit)",
        moments.mean,
        "tokens",
        {
            "shape": (scenario.shape, ""),
            "mean": (scenario.mean_output, "tokens"),
            "limit": (output, "tokens"),
        },
    )
    unmodeled = admission.policy_problem(config, release)
    if unmodeled is not None:
        return result.stop("not_modeled", unmodeled)
    found = admission.record(config, derivation, blocks=blocks, prompt=prompt, output=output)
    result.running, result.binds = found.running, found.binds
    result.running_steady = steady.record(
        config, release, derivation, found=found, prompt=prompt, moments=moments, fixed=scenario.shape == "fixed"
    )
    dispatch.record_use(config, result, derivation, sizes=sizes, running=found.running)
    return result


def at_assumption(scenario: Scenario, release: EngineRelease, plan: EnginePlan, assumption: int) -> Sensitivity:
    """Pool, tokens and running of `plan` when the memory beside the weights is `assumption` bytes, without steps.

    Equal to what the plan of such a scenario says; None where it is not ok.
    """
    config, total = configuration_of(plan), scenario.gpu.cuda_total
    nothing = Sensitivity(assumption, None, None, None)
    if config is None or total is None or config.fraction >= release.number("fraction_below"):
        return nothing
    own = plan.weights_bytes or 0
    free = budget.free_bytes(
        cuda_total=total, weights=own, runtime=assumption, states=_states(scenario, release, config)
    )
    if free <= 0 or admission.policy_problem(config, release) is not None:
        return nothing
    granted = budget.granted_bytes(free=free, fraction=config.fraction)
    kv_format = layout.kv_format(release, config.kv_dtype)
    found = pool.planned_pool(scenario.model.layers, config, kv_format, tp=scenario.tp, free=free, granted=granted)
    admitted = admission.admit(
        blocks=found.blocks,
        prompt=scenario.prompt,
        max_tokens=scenario.max_tokens,
        max_batch_size=config.max_batch_size,
        max_seq_len=found.max_seq_len,
        max_num_tokens=config.max_num_tokens,
        chunked_prefill=config.chunked_prefill,
        tokens_per_block=config.tokens_per_block,
    )
    if isinstance(admitted, admission.Refused):
        return nothing
    by_tokens = admission.requests_by_tokens(config, scenario.prompt)
    return Sensitivity(assumption, granted, found.tokens, min(admitted.running, by_tokens))
