"""The reserve, the weights and the budget of one scenario, with their steps."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from enginemem.derivation import Operand
from enginemem.encoder import AT_WORK, NARROWED, UNSIZED, sized
from enginemem.engines.sglang import budget as granted
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.pool import States
from enginemem.engines.sglang.reserve import Reserve, mem_fraction_static, vision_size
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Part, Run, StopPlan
from enginemem.engines.sglang.states import record_states
from enginemem.engines.sglang.vision import encoder_share
from enginemem.engines.sglang.weights import WIDE, weights
from enginemem.units import GIB, gb


def record_reserve(
    run: Run, model: ModelFacts, config: Configuration, reserve: Reserve, *, mib: int, gpus: int
) -> None:
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
    }
    expression, note = "float(decode * each_decode + prefill * each_prefill)", None
    if reserve.graphs.prefill == config.reserved_prefill_count * release.integer("prefill_graph_mib"):
        operands["prefill"] = (config.reserved_prefill_count, "sizes")
        operands["each_prefill"] = (release.integer("prefill_graph_mib"), "MiB")
    else:
        expression = "float(decode * each_decode + prefill)"
        operands["prefill"] = (reserve.graphs.prefill, "MiB")
        note = (
            "Latent attention: one figure for all prefill graphs." if model.mla else "No prefill graphs for this class."
        )
    steps.add(
        "reserve.graphs",
        "Reserve for CUDA graphs",
        expression,
        reserve.graphs.total,
        "MiB",
        operands,
        "graph_reserve",
        role="add",
        note=note,
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
    expression = "round((capacity - reserve) / capacity, decimals)"
    plain = mem_fraction_static(release, mib=mib, reserve_mib=reserve.total)
    if config.mem_fraction_static != plain and model.vision is not None:
        expression = f"{expression} * (most * clamp(1.0 - slope * (size - 1.0), low, high))"
        operands |= {
            "most": (release.number("vision_factor"), ""),
            "slope": (release.number("vision_sensitivity"), ""),
            "size": (vision_size(release, model.vision), "encoders of the reference size"),
            "low": (release.number("vision_low"), ""),
            "high": (release.number("vision_high"), ""),
        }
    steps.add(
        "resolve.fraction",
        "Static fraction",
        expression,
        config.mem_fraction_static,
        "",
        operands,
        "fraction",
        note="Lowered for the vision encoder, by its size." if model.vision is not None else None,
    )


class Free(NamedTuple):
    """Free GiB before and after the weights, the pool's bytes, and the pool of recurrent states."""

    before: float
    after: float
    pool: int
    states: States | None = None


def record_weights(run: Run) -> int:
    """Bytes of the weights on one GPU, with steps."""
    scenario, steps = run.scenario, run.steps
    dtype = scenario.text("weight_dtype")
    found = weights(
        scenario.model,
        tp=scenario.tp,
        weight_dtype=dtype,
        vocabulary_multiple=run.release.integer("vocabulary_multiple"),
    )
    held, other = found.held, found.held.embedding + found.held.head + found.held.small
    stored = dtype == "auto" and scenario.model.quantization is not None
    each = 1 if dtype == "fp8" else WIDE
    operands: dict[str, Operand] = {
        "linear": (held.linear // each, "parameters"),
        "linear_bytes": (each, "bytes each"),
        "other": (other // WIDE, "parameters"),
        "other_bytes": (WIDE, "bytes each"),
    }
    expression = "linear * linear_bytes + other * other_bytes"
    if stored or other % WIDE:
        operands = {"linear": (held.linear, "bytes"), "scales": (held.scales, "bytes"), "other": (other, "bytes")}
        expression = "linear + scales + other"
    if found.copies:
        operands["latent_copies"] = (found.copies, "bytes")
        expression += " + latent_copies"
    encoder = _record_encoder(run, narrowed=dtype == "fp8")
    if encoder:
        operands["vision"] = (encoder, "bytes")
        expression += " + vision"
    note = "Parameters only: the engine itself measures by how much the free memory drops."
    if each < WIDE:
        note = "Embeddings, head, norms and biases stay 16-bit; scales of the FP8 matrices are not counted."
    elif stored:
        note = f"Matrices as the checkpoint's {scenario.model.quantization} quantisation stores them."
    if scenario.model.vision is not None and not sized(scenario.model.vision):
        note += f" {UNSIZED}"
    total = found.total + encoder
    steps.add(
        "weights.total", "Weights per GPU", expression, total, "bytes", operands, "weights", "vocabulary", note=note
    )
    return total


def _record_encoder(run: Run, *, narrowed: bool) -> int:
    """Record the vision encoder's bytes on one GPU and return them; 0 where none is loaded or its size is not known."""
    model, left_out = run.scenario.model, run.release.values["vision_left_out"]
    if not sized(model.vision):
        return 0
    multiple = run.release.integer("vocabulary_multiple")
    share = encoder_share(model, tp=run.scenario.tp, vocabulary_multiple=multiple, left_out=left_out)
    if share.problem is not None:
        raise StopPlan("refused", share.problem)
    note = "Not loaded: this class is served without images unless --enable-multimodal is given."
    if share.bytes.total:
        note = (
            "Cut over the GPUs unless --mm-enable-dp-encoder is given."
            if run.scenario.tp > 1
            else "Loaded at start-up."
        )
        note = f"{note} {NARROWED}" if narrowed else note
    run.steps.add(
        "weights.vision",
        "Vision encoder with its projector",
        "cut + copied",
        share.bytes.total,
        "bytes",
        {"cut": (share.bytes.cut, "bytes"), "copied": (share.bytes.copied, "bytes")},
        "vision_weights",
        "multimodal_default",
        role="add",
        note=note,
    )
    return share.bytes.total


def record_budget(
    run: Run, part: Part, model: ModelFacts, options: Options, config: Configuration, *, weight_bytes: int
) -> Free:
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
            f"weights of {gb(weight_bytes)} per GPU, and {gb(max(0, part.total - preload))} are free: "
            "use more GPUs or a larger one",
            binds="does_not_fit",
        )
    work = f"{AT_WORK}, " if model.vision is not None else ""
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
        note=f"Activations, {work}CUDA graphs, workspaces and the request table come out of the slack; the pool never "
        "shrinks.",
    )
    operands = {"after": (after, "GiB"), "slack": (slack, "GiB"), "gib": gib}
    expression, rest = "after - slack", after - slack
    images = granted.multimodal_gib(
        run.release, multimodal=model.vision is not None, transport=options.mm_feature_transport
    )
    if images:
        expression, rest = f"{expression} - images", rest - images
        operands["images"] = (images, "GiB")
    states = record_states(run, model, options, config, rest=rest) if rest > 0 else None
    if states is not None:
        expression, rest = f"{expression} - (slots + 1) * state / gib", states.rest
        operands |= {"slots": (states.slots, "slots"), "state": (states.bytes_each, "bytes")}
    pool = granted.pool_bytes(rest)
    steps.add("budget.pool", "KV pool per GPU", f"int(({expression}) * gib)", pool, "bytes", operands, "profile")
    if rest <= 0:
        least = granted.no_memory(run.release, before, after)
        raise StopPlan(
            "does_not_fit",
            f"the loaded weights leave nothing for the KV cache at mem_fraction_static {fraction:g}: at least "
            f"{least.minimum_fraction:.4f} is needed, the engine suggests more than {least.suggested_fraction:.3f}",
            binds="does_not_fit",
        )
    return Free(before, after, pool, states)
