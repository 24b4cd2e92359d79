"""Stage 0 of one scenario: the capacity and the resolved configuration, with their steps."""

from __future__ import annotations

from enginemem.derivation import Operand
from enginemem.engines.plan import SetBy
from enginemem.engines.sglang.dispatch import graph_ranges
from enginemem.engines.sglang.grant import record_reserve
from enginemem.engines.sglang.length import context_factor, context_length, stated_length
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.reserve import capacity_defaults
from enginemem.engines.sglang.resolve import Configuration, configuration
from enginemem.engines.sglang.run import Part, Run, StopPlan
from enginemem.hardware import smi_over_cuda_bound
from enginemem.units import MIB


def record_capacity(run: Run, options: Options, part: Part) -> int:
    """The capacity in MiB that the defaults are chosen by, as a step; a bound stands for it where that is enough."""
    gpu, release = part.gpu, run.release
    mib = (MIB, "bytes a MiB")
    if gpu.smi_total is not None:
        value = int(gpu.smi_total // MIB)
        operands: dict[str, Operand] = {"smi_total": (gpu.smi_total, "bytes"), "mib": mib}
        run.steps.add("resolve.capacity", "GPU capacity", "floor(smi_total / mib)", value, "MiB", operands, "capacity")
        return value
    low = int(part.total // MIB)
    operands = {"cuda_total": (part.total, "bytes"), "mib": mib}
    if gpu.id in release.values["capacity_from_torch"]:
        note = "There is no nvidia-smi total for this part, so the engine falls back to torch's total."
        run.steps.add(
            "resolve.capacity",
            "GPU capacity",
            "floor(cuda_total / mib)",
            low,
            "MiB",
            operands,
            "capacity",
            note=note,
        )
        return low
    if options.mem_fraction_static is None:
        raise StopPlan(
            "not_modeled",
            f"the default fraction needs the nvidia-smi total of {gpu.name}: give smi_total, or set "
            "sglang.mem_fraction_static",
        )
    high = int(part.total * smi_over_cuda_bound() // MIB)
    ends = [capacity_defaults(release, mib_value, tp=options.tp_size) for mib_value in (low, high)]
    settled = options.chunked_prefill_size is not None and options.cuda_graph_max_bs_decode is not None
    if ends[0] != ends[1] and not settled:
        raise StopPlan(
            "not_modeled",
            f"the defaults of {gpu.name} depend on its nvidia-smi total: give smi_total, or set "
            "sglang.chunked_prefill_size and sglang.cuda_graph_max_bs",
        )
    run.steps.add(
        "resolve.capacity",
        "GPU capacity, at least",
        "floor(cuda_total / mib)",
        low,
        "MiB",
        operands,
        "capacity",
        note=f"The nvidia-smi total is not known; up to {high:,} MiB it would leave all defaults the same.",
    )
    return low


def record_configuration(run: Run, model: ModelFacts, options: Options, part: Part, *, mib: int) -> Configuration:
    """The resolved configuration with the steps of the graphs, the reserve and the fraction."""
    if mib < 1:
        raise StopPlan("does_not_fit", f"{part.gpu.name} has less than one MiB of memory", binds="does_not_fit")
    config = configuration(run.release, model, options, mib=mib, capability=part.capability)
    if config.chunked_prefill_size > 0 and config.chunked_prefill_size % config.page_size:
        raise StopPlan(
            "refused",
            f"the chunked_prefill_size of {config.chunked_prefill_size:,} is no multiple of the page of "
            f"{config.page_size} tokens",
        )
    _note_resolved(run, options, config)
    _record_context(run, options)
    _record_graphs(run, options, config, mib=mib)
    if config.reserve is not None:
        record_reserve(run, model, config, config.reserve, mib=mib, gpus=options.tp_size)
    return config


def _note_resolved(run: Run, options: Options, config: Configuration) -> None:
    def note(name: str, value: int | float | str, given: object, otherwise: SetBy) -> None:
        run.resolved(name, value, otherwise if given is None else "user")

    page, kv_dtype = options.page_size, options.kv_cache_dtype
    kept = page if page == config.page_size else None  # a page that the backend cannot read is replaced
    plain = config.page_size == run.release.integer("page_size")
    note("mem_fraction_static", config.mem_fraction_static, options.mem_fraction_static, "derived")
    note("chunked_prefill_size", config.chunked_prefill_size, options.chunked_prefill_size, "derived")
    note("max_prefill_tokens", config.max_prefill_tokens, None, "default")
    note("page_size", config.page_size, kept, "default" if plain else "derived")
    note("attention_backend", config.attention_backend, None, "derived")
    note("kv_cache_dtype", config.kv_cache_dtype, None if kv_dtype == "auto" else kv_dtype, "default")
    note("schedule_policy", config.schedule_policy, None, "default")
    note("schedule_conservativeness", config.schedule_conservativeness, options.schedule_conservativeness, "default")
    note("cuda_graph_max_bs_decode", config.decode_graph_max_bs, options.cuda_graph_max_bs_decode, "derived")
    note("cuda_graph_max_bs_prefill", config.prefill_graph_max_tokens, None, "derived")


def _record_context(run: Run, options: Options) -> None:
    """The context length as a step where a rope factor stretches it."""
    model, factor = run.scenario.model, float(context_factor(run.scenario.model))
    if factor == 1:
        return
    given, own = options.context_length, context_length(model)
    operands: dict[str, Operand] = {"model": (stated_length(model), "tokens"), "factor": (factor, "")}
    if given is not None:
        operands["given"] = (given, "tokens")
    run.steps.add(
        "resolve.context_length",
        "Context length",
        "int(factor * model)" if given is None else "min(given, int(factor * model))",
        own if given is None else given,
        "tokens",
        operands,
        "rope_context",
        "context_length",
        role="limit",
        note="the trained length, stretched by its rope factor",
    )


def _record_graphs(run: Run, options: Options, config: Configuration, *, mib: int) -> None:
    release, steps = run.release, run.steps
    defaults = capacity_defaults(release, mib, tp=options.tp_size)
    given = options.chunked_prefill_size
    default: Operand = (defaults.chunked_prefill_size, "tokens")
    steps.add(
        "resolve.chunk",
        "Prefill chunk",
        "default" if given is None else "given",
        config.chunked_prefill_size,
        "tokens",
        {"default": default} if given is None else {"given": (given, "tokens")},
        "fraction",
        note=f"The default of a GPU with {mib:,} MiB." if given is None else None,
    )
    graph, cap = options.cuda_graph_max_bs_decode, options.max_running_requests
    operands: dict[str, Operand] = {"default": (defaults.decode_graph, "requests")}
    if graph is not None:
        expression, operands = "given", {"given": (graph, "requests")}
    elif cap is not None:
        # A vision model on a large Hopper part raises the default to the cap; others only clip it.
        raised = config.decode_graph_max_bs > defaults.decode_graph
        expression, operands = "cap" if raised else "min(default, cap)", {**operands, "cap": (cap, "requests")}
    else:
        expression = "default"
    steps.add(
        "resolve.decode_graph",
        "Largest decode graph",
        expression,
        config.decode_graph_max_bs,
        "requests",
        operands,
        "fraction",
        note=f"{config.decode_graph_count} sizes, before the request cap filters them.",
    )
    largest = config.prefill_graph_max_tokens
    operands = {
        "ranges": (graph_ranges(release, "prefill_graph_ranges"), "tokens"),
        "largest": (largest, "tokens"),
    }
    steps.add(
        "resolve.prefill_graphs",
        "Prefill graph sizes",
        "len(graph_sizes((), ranges, largest))",
        config.prefill_graph_count,
        "sizes",
        operands,
        "prefill_sizes",
    )
