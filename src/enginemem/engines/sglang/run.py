"""One plan in the making: what every stage reads, and how a stage ends it early."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from enginemem.blocks import uneven_blocks
from enginemem.derivation import Derivation
from enginemem.engines.plan import Binds, EnginePlan, Resolved, SetBy, Status
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.hardware import Gpu
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario

BLOCK_METHODS = ("fp8", "compressed-tensors")
UNCHECKED = ("mimo_v2_flash",)
"""Model types whose fused projections are not checked against the blocks (models/mimo_v2.py)."""
"""Methods whose blocks under one scale the engine checks against the cut of a matrix."""


class Run(NamedTuple):
    """Scenario, release, the steps that a stage adds to, and the plan it fills in."""

    scenario: Scenario
    release: EngineRelease
    steps: Derivation
    plan: EnginePlan

    def resolved(self, name: str, value: int | float | str | None, set_by: SetBy) -> None:
        """Note one value of the resolved configuration and who set it."""
        self.plan.resolved[name] = Resolved(value, set_by)


class Part(NamedTuple):
    """The GPU as the rules need it: compute capability and the CUDA total in bytes."""

    gpu: Gpu
    capability: tuple[int, int]
    total: int | Fraction


class StopPlan(Exception):
    """Ends the plan with `status` and a reason that says what to change: the engine's answer, not an error."""

    def __init__(self, status: Status, reason: str, *, binds: Binds | None = None) -> None:
        super().__init__(reason)
        self.status: Status = status
        self.reason = reason
        self.binds: Binds | None = binds


KV_DTYPES = {"auto": "auto", "bf16": "bfloat16", "fp8": "fp8_e4m3", "nvfp4": "nvfp4"}
"""The inputs' names of KV types, as the engine's option names them."""


def options_of(scenario: Scenario) -> Options:
    """The engine's options that a scenario stands for."""
    return Options(
        tp_size=scenario.tp,
        mem_fraction_static=scenario.decimal("sglang.mem_fraction_static"),
        chunked_prefill_size=scenario.integer("sglang.chunked_prefill_size"),
        max_running_requests=scenario.integer("sglang.max_running_requests"),
        schedule_conservativeness=scenario.decimal("sglang.schedule_conservativeness"),
        page_size=scenario.integer("sglang.page_size"),
        cuda_graph_max_bs_decode=scenario.integer("sglang.cuda_graph_max_bs"),
        context_length=scenario.integer("max_model_len"),
        kv_cache_dtype=KV_DTYPES[kv_type(scenario)],
    )


def kv_type(scenario: Scenario) -> str:
    """The KV type that the user or the checkpoint asks for; the engine reads only ModelOpt's own declaration."""
    given, model = scenario.text("kv_dtype"), scenario.model
    declared = model.kv_cache_dtype if model.quantization == "modelopt" else None
    return declared or given if given == "auto" else given


def part_of(run: Run) -> Part:
    """The scenario's GPU; stops the plan when it is no NVIDIA part or its CUDA total is unknown."""
    gpu = run.scenario.gpu
    if gpu.vendor != "NVIDIA" or gpu.compute_capability is None:
        raise StopPlan("not_modeled", f"only NVIDIA GPUs are modeled; {gpu.name} is none")
    if gpu.cuda_total is None:
        raise StopPlan("not_modeled", f"the CUDA total of {gpu.name} is not known: give cuda_total")
    return Part(gpu, gpu.compute_capability, gpu.cuda_total)


def check_start(run: Run, model: ModelFacts | None, part: Part) -> ModelFacts:
    """The model's facts; stops the plan where the server would not start or no rule here covers it."""
    scenario, release = run.scenario, run.release
    if model is None:
        raise StopPlan("not_modeled", f"{scenario.model.name} has layers that are not modeled for this engine")
    major, minor = part.capability
    needed = release.integer("fp8_weights_capability")
    if scenario.text("weight_dtype") == "fp8" and 10 * major + minor < needed:
        least = f"{needed // 10}.{needed % 10}"
        raise StopPlan("refused", f"FP8 weights need compute capability {least}; {part.gpu.name} has {major}.{minor}")
    if kv_type(scenario) == "nvfp4":
        if major not in release.integers("fp4_kv_majors"):
            raise StopPlan("refused", f"an nvfp4 KV cache needs a Blackwell GPU; {part.gpu.name} has {major}.{minor}")
        raise StopPlan("not_modeled", "an nvfp4 KV cache adds scale bytes in a layout that is not modeled")
    if model.compressed is not None:
        _check_compressed(run, model, part)
    if model.side_index[0] and major not in release.integers("block_sparse_majors"):
        raise StopPlan(
            "not_modeled",
            f"{model.class_name} on compute capability {major}.{minor}: the class settles backend and page for "
            "9.x and 10.x only (arg_groups/model_overrides/minimax_m3.py), and which page its sparse layers then read "
            "is not known here",
        )
    for rope in scenario.model.ropes:
        if rope.type is not None and rope.type not in release.values["rope_types"]:
            raise StopPlan("not_modeled", f"the release's get_rope knows no rope type {rope.type}")
    asked = scenario.integer("max_model_len")
    if asked is not None and asked > model.context:
        raise StopPlan(
            "refused", f"the max_model_len of {asked:,} is above the model's own {model.context:,}: give at most that"
        )
    problem = uneven_blocks(scenario.model.inventory, tp=scenario.tp, merged=scenario.model.model_type not in UNCHECKED)
    if problem is not None and scenario.text("weight_dtype") == "auto" and scenario.model.quantization in BLOCK_METHODS:
        raise StopPlan("refused", problem)
    return model


def _check_compressed(run: Run, model: ModelFacts, part: Part) -> None:
    """Stop the plan where the kernels of compressed layers do not serve it."""
    release, (major, minor) = run.release, part.capability
    if major not in release.integers("compressed_majors"):
        raise StopPlan(
            "not_modeled",
            f"{model.class_name} on compute capability {major}.{minor}: its attention backend dsv4 has kernels for "
            f"{', '.join([f'{each}.x' for each in release.integers('compressed_majors')])} "
            "(layers/attention/deepseek_v4_backend.py)",
        )
    if kv_type(run.scenario) == "bf16":
        raise StopPlan(
            "refused",
            f"a bf16 KV cache: the pool of {model.class_name} is built for fp8 rows only and stops the start with an "
            "assertion; leave the KV type at auto, or choose fp8",
        )
    chunk = run.scenario.integer("sglang.chunked_prefill_size")
    if chunk is not None and chunk <= 0:
        raise StopPlan(
            "not_modeled",
            f"{model.class_name} without chunked prefill: its window pool is then a share of the full one, by a rule "
            "that is not modeled",
        )
