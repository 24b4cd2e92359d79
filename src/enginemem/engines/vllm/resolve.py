"""Stage 0: the engine's resolved configuration, each value with who set it.

Source rules: `EngineArgs.get_batch_defaults`, `_set_default_max_num_seqs_and_batched_tokens_args`,
`SchedulerConfig.verify_max_model_len`, `_get_and_verify_max_len`, `_resolve_auto_dtype` at 0.32.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from enginemem.derivation import Operand
from enginemem.engines.plan import Resolved, SetBy
from enginemem.engines.vllm.attention import check_types, kv_element, record_attention
from enginemem.engines.vllm.length import model_length
from enginemem.engines.vllm.run import Run, not_modeled, refused
from enginemem.engines.vllm.weights import BYTES_16BIT, BYTES_FP8
from enginemem.hardware import Gpu, smi_over_cuda_bound
from enginemem.release import EngineRelease
from enginemem.units import GIB, Exact

Usage = Literal["api_server", "llm_class"]


class BatchSizes(NamedTuple):
    """Token budget of one step, and the request cap."""

    max_num_batched_tokens: int
    max_num_seqs: int


class Setup(NamedTuple):
    """What later stages need: lengths and budgets in tokens, `request_cap` in requests, `cap_from_budget` when the
    step budget clipped it; `kv_format` is the element format of the KV cache, `linear_bytes` bytes a parameter of the
    layers' matrices (None: as the checkpoint stores them), `forced_bytes` and `forced_blocks` a KV cache size given outright."""

    max_model_len: int
    step_tokens: int
    request_cap: int
    cap_from_budget: bool
    block_size: int
    kv_format: str
    linear_bytes: int | None
    utilization: float
    watermark: float
    forced_bytes: int | None
    forced_blocks: int | None


def class_default(total: Exact, minimums: Sequence[int], defaults: Sequence[int]) -> int:
    """The default of the first class whose minimum memory, in bytes, `total` reaches."""
    for minimum, default in zip(minimums, defaults, strict=True):
        if total >= minimum:
            return default
    return defaults[-1]


def batch_classes(
    release: EngineRelease, *, device_name: str, usage: Usage
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(minimum bytes, default step tokens, default request caps) of the classes open to a device of that name."""
    lowered = device_name.lower()
    rows = [
        row
        for row in release.tables["batch_defaults"]
        if row["name_without"] is None or row["name_without"] not in lowered
    ]
    minimums = tuple([row["minimum_gib"] * GIB for row in rows])
    tokens = tuple([row[f"{usage}_tokens"] for row in rows])
    return minimums, tokens, tuple([row[f"{usage}_requests"] for row in rows])


def clipped(*, tokens: int, requests: int, tokens_given: bool, requests_given: bool, max_model_len: int) -> BatchSizes:
    """Defaults after the engine's clips: tokens to what `requests` of the maximum length can fill, then requests to
    the tokens; given values stay."""
    if not tokens_given:
        tokens = min(requests * max_model_len, tokens)
    return BatchSizes(tokens, requests if requests_given else min(requests, tokens))


def batch_defaults(
    release: EngineRelease, *, nvml_total: Exact, device_name: str, max_model_len: int, usage: Usage = "api_server"
) -> BatchSizes:
    """Step tokens and request cap when the user gives neither; `nvml_total` is nvidia-smi's total in bytes."""
    minimums, tokens, requests = batch_classes(release, device_name=device_name, usage=usage)
    return clipped(
        tokens=class_default(nvml_total, minimums, tokens),
        requests=class_default(nvml_total, minimums, requests),
        tokens_given=False,
        requests_given=False,
        max_model_len=max_model_len,
    )


def class_total(gpu: Gpu, minimums: Sequence[int]) -> tuple[Exact, str | None]:
    """The memory that decides the class, with a note when it is not nvidia-smi's own figure.

    Without that figure the CUDA total decides if no class begins between it and the largest total that goes with it;
    else raises StopPlan.
    """
    if gpu.smi_total is not None:
        return gpu.smi_total, None
    if gpu.cuda_total is None:
        raise not_modeled(f"the nvidia-smi total of {gpu.name} is not known: give smi_total")
    highest = gpu.cuda_total * smi_over_cuda_bound()
    if any(gpu.cuda_total < minimum <= highest for minimum in minimums):
        raise not_modeled(f"the defaults of {gpu.name} depend on its nvidia-smi total: give smi_total")
    return gpu.cuda_total, "No nvidia-smi total known: every total that goes with this CUDA total is of the same class."


def resolve(run: Run) -> Setup:
    """Resolve everything that does not depend on memory; raises StopPlan where the engine or our knowledge ends."""
    scenario, plan, gpu = run.scenario, run.plan, run.scenario.gpu
    if gpu.vendor != "NVIDIA" or gpu.compute_capability is None:
        raise not_modeled(f"only NVIDIA GPUs are modeled; {gpu.name} is none")
    if gpu.cuda_total is None:
        raise not_modeled(f"the CUDA total of {gpu.name} is not known: give cuda_total")
    check_types(scenario, run.release)
    length = _max_model_len(run)
    sizes = _batch(run, length)
    block = record_attention(run)
    utilization, watermark = _shares(run)
    forced = scenario.quantity("vllm.kv_cache_memory_bytes")
    blocks = scenario.integer("vllm.num_gpu_blocks_override")
    if forced is not None:
        plan.resolved["kv_cache_memory_bytes"] = Resolved(int(forced), "user")
    if blocks is not None:
        plan.resolved["num_gpu_blocks_override"] = Resolved(blocks, "user")
    kv_dtype = kv_element(scenario)
    return Setup(
        max_model_len=length,
        step_tokens=sizes.max_num_batched_tokens,
        request_cap=sizes.max_num_seqs,
        cap_from_budget=plan.resolved["max_num_seqs"].set_by == "derived",
        block_size=block,
        kv_format=kv_dtype,
        linear_bytes={"fp8": BYTES_FP8, "bf16": BYTES_16BIT}.get(scenario.text("weight_dtype")),
        utilization=utilization,
        watermark=watermark,
        forced_bytes=None if forced is None else int(forced),
        forced_blocks=blocks,
    )


def _shares(run: Run) -> tuple[float, float]:
    """Share of the GPU that the engine asks for, and share of the blocks kept free at admission."""
    scenario, release, plan = run.scenario, run.release, run.plan
    given, kept = scenario.decimal("vllm.gpu_memory_utilization"), scenario.decimal("vllm.watermark")
    utilization = release.number("gpu_memory_utilization") if given is None else given
    watermark = release.number("watermark") if kept is None else kept
    plan.resolved["gpu_memory_utilization"] = Resolved(utilization, _set_by(given))
    plan.resolved["watermark"] = Resolved(watermark, _set_by(kept))
    if watermark >= release.number("watermark_limit"):
        raise refused("the watermark must be below 1: it is the share of the blocks kept free at admission")
    return utilization, watermark


def _set_by(given: object) -> SetBy:
    return "default" if given is None else "user"


def unscaled_types(release: EngineRelease) -> tuple[str, ...]:
    """Rope types whose factor the release leaves out of the length."""
    return tuple([row["rope_type"] for row in release.tables["unscaled_ropes"]])


def _max_model_len(run: Run) -> int:
    """The longest sequence: the model's own, or the user's if the model reaches it."""
    model, given = run.scenario.model, run.scenario.integer("max_model_len")
    known = run.release.values["rope_types"]
    for rope in model.ropes:
        if rope.type is not None and rope.type not in known:
            raise not_modeled(f"the release's get_rope knows no rope type {rope.type}")
    length = model_length(model, unscaled_types(run.release))
    if given is not None and given > length.stated * length.factor:
        raise refused(f"the max_model_len of {given:,} is above the model's own {length.limit:,}: give at most that")
    value = length.default if given is None else given
    operands: dict[str, Operand] = {"model": (length.stated, "tokens")}
    expression, note = "model", None
    if given is None and length.default != length.limit:
        operands, note = (
            {"original": (length.default, "tokens")},
            f"LongRoPE: up to {length.limit:,} tokens on request.",
        )
        expression = "original"
    elif length.factor != 1:
        operands["factor"] = (length.factor, "")
        expression, note = "int(model * factor)", "The trained length, stretched by its rope factor."
    if given is not None:
        operands["given"] = (given, "tokens")
        expression = f"min(given, {expression})"
    run.steps.add(
        "resolve.max_model_len",
        "Maximum model length",
        expression,
        value,
        "tokens",
        operands,
        "max_model_len",
        note=note,
    )
    run.plan.resolved["max_model_len"] = Resolved(value, _set_by(given))
    return value


def _batch(run: Run, length: int) -> BatchSizes:
    """Step tokens and request cap, with their defaults by GPU class only where the user gave none."""
    scenario, release, steps = run.scenario, run.release, run.steps
    tokens, requests = scenario.integer("vllm.max_num_batched_tokens"), scenario.integer("vllm.max_num_seqs")
    default_tokens = default_requests = None
    if tokens is None or requests is None:
        minimums, by_class, requests_by_class = batch_classes(
            release, device_name=scenario.gpu.device_name, usage="api_server"
        )
        total = class_total(scenario.gpu, minimums)
        operands: dict[str, Operand] = {"total": (total[0], "bytes"), "minimums": (minimums, "bytes")}
        if tokens is None:
            default_tokens = class_default(total[0], minimums, by_class)
            steps.add(
                "resolve.default_step_tokens",
                "Step token budget of the GPU class",
                "class_default(total, minimums, defaults)",
                default_tokens,
                "tokens",
                {**operands, "defaults": (by_class, "tokens")},
                "batch_defaults",
                note=total[1],
            )
        if requests is None:
            default_requests = class_default(total[0], minimums, requests_by_class)
            steps.add(
                "resolve.default_requests",
                "Request cap of the GPU class",
                "class_default(total, minimums, defaults)",
                default_requests,
                "requests",
                {**operands, "defaults": (requests_by_class, "requests")},
                "batch_defaults",
                note=total[1],
            )
    cap = requests if requests is not None else default_requests or 0
    sizes = clipped(
        tokens=tokens if tokens is not None else default_tokens or 0,
        requests=cap,
        tokens_given=tokens is not None,
        requests_given=requests is not None,
        max_model_len=length,
    )
    _record_batch(run, sizes, default_tokens=default_tokens, default_requests=default_requests, cap=cap, length=length)
    if sizes.max_num_batched_tokens < sizes.max_num_seqs:
        raise refused(
            f"the max_num_batched_tokens of {sizes.max_num_batched_tokens:,} is below the max_num_seqs of "
            f"{sizes.max_num_seqs:,}: "
            "raise the one or lower the other"
        )
    return sizes


def _record_batch(
    run: Run,
    sizes: BatchSizes,
    *,
    default_tokens: int | None,
    default_requests: int | None,
    cap: int,
    length: int,
) -> None:
    steps, plan = run.steps, run.plan
    tokens, requests = sizes
    if default_tokens is not None:
        steps.add(
            "resolve.step_tokens",
            "Step token budget",
            "min(default, request_cap * max_model_len)",
            tokens,
            "tokens",
            {
                "default": (default_tokens, "tokens"),
                "request_cap": (cap, "requests"),
                "max_model_len": (length, "tokens"),
            },
            "batch_resolution",
            role="limit",
        )
    if default_requests is not None:
        steps.add(
            "resolve.request_cap",
            "Request cap",
            "min(default, step_tokens)",
            requests,
            "requests",
            {"default": (default_requests, "requests"), "step_tokens": (tokens, "tokens")},
            "batch_resolution",
            role="limit",
        )
    set_tokens: SetBy = "user" if default_tokens is None else "default" if tokens == default_tokens else "derived"
    set_requests: SetBy = (
        "user" if default_requests is None else "default" if requests == default_requests else "derived"
    )
    plan.step_token_budget = tokens
    plan.resolved["max_num_batched_tokens"] = Resolved(tokens, set_tokens)
    plan.resolved["max_num_seqs"] = Resolved(requests, set_requests)
