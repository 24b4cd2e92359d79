"""Stage 0: knobs and GPU facts to the engine's resolved configuration. No default depends on the GPU's memory."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from enginemem.architecture import Architecture
from enginemem.derivation import Derivation, NotModeled, Operand
from enginemem.engines.plan import EnginePlan, Resolved, SetBy
from enginemem.engines.tensorrt_llm.layout import layout_problem
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario
from enginemem.units import Exact

_PREFIX = "tensorrt-llm."


class Configuration(NamedTuple):
    """The resolved options; lengths in tokens, batch sizes in requests."""

    max_seq_len: int
    max_batch_size: int
    max_num_tokens: int
    tokens_per_block: int
    fraction: float
    policy: str
    chunked_prefill: bool
    graph_padding: bool
    graph_sizes: tuple[int, ...] | None
    fp8_weights: bool
    kv_dtype: str


def served_length(*, model_length: int, requested: int | None) -> int:
    """max_seq_len in tokens: the model's own length, which also caps a larger request with a warning.

    Source rule: model_engine.py, PyTorchModelEngine._init_model_capacity.
    """
    return model_length if requested is None else min(requested, model_length)


def length_factor(model: Architecture, release: EngineRelease) -> Exact:
    """The factor on max_position_embeddings: that of the scaling, unless its type has a length of its own.

    Source rule: modeling_utils.py, DecoderModelForCausalLM.infer_max_seq_len.
    """
    rope = next((rope for rope in model.ropes if rope.part in ("all", "full")), None)
    return 1 if rope is None or rope.type in release.values["rope_types_with_their_own_length"] else rope.factor


def model_length(model: Architecture, release: EngineRelease) -> int:
    """The model's own length in tokens: the product in floating point, rounded up."""
    factor = length_factor(model, release)
    return model.max_position if factor == 1 else ceil(model.max_position * float(factor))


def step_token_budget(*, max_num_tokens: int, max_seq_len: int, max_batch_size: int) -> int:
    """Tokens of one step: max_num_tokens, never more than all requests could hold.

    Source rule: py_executor_creator.py, create_py_executor.
    """
    return min(max_num_tokens, max_seq_len * max_batch_size)


def unsupported(scenario: Scenario, release: EngineRelease) -> NotModeled | None:
    """Why this GPU, model or element type is not modeled, or None."""
    gpu, model = scenario.gpu, scenario.model
    capability = gpu.compute_capability
    if gpu.vendor != "NVIDIA" or capability is None:
        return NotModeled(f"TensorRT-LLM runs on NVIDIA GPUs only; {gpu.name} is none")
    lowest = release.integers("compute_capability")
    if capability < lowest:
        return NotModeled(_too_old(gpu.name, capability, lowest, "TensorRT-LLM supports Ampere and newer"))
    lowest = release.integers("fp8_weights_compute_capability")
    if scenario.text("weight_dtype") == "fp8" and capability < lowest:
        return NotModeled(_too_old(gpu.name, capability, lowest, "FP8 weights are supported on Ada and newer"))
    major = release.integer("nvfp4_kv_compute_capability_major")
    declared = model.kv_cache_dtype if scenario.text("kv_dtype") == "auto" else scenario.text("kv_dtype")
    if declared == "nvfp4" and capability[0] != major:
        return NotModeled(
            f"an NVFP4 KV cache is documented for compute capability {major}.x only; {gpu.name} has "
            f"{capability[0]}.{capability[1]}: choose kv_dtype fp8 or bf16"
        )
    if model.registered:
        return NotModeled(
            f"{model.class_name}: the source of release {release.release} is not at hand, so whether its registry has "
            "this class is not known here"
        )
    if model.vision is not None and length_factor(model, release) != 1:
        return NotModeled(
            f"{model.name}: a rope factor stretches the length, and whether it is looked for in the language model's part "
            "of a multimodal configuration is not known here"
        )
    if model.unmodeled is not None:
        return NotModeled(model.unmodeled)
    problem = layout_problem(model.layers)
    return None if problem is None else NotModeled(f"{model.name}: {problem}")


def _too_old(name: str, has: tuple[int, ...], needs: tuple[int, ...], rule: str) -> str:
    return f"{rule} (compute capability {needs[0]}.{needs[1]}); {name} has {has[0]}.{has[1]}"


def _tokens_per_block(scenario: Scenario, release: EngineRelease, plan: EnginePlan) -> int:
    """Tokens a block: the engine overrides the option for a 576-wide latent on compute capability 9.0."""
    asked = scenario.integer(_PREFIX + "tokens_per_block")
    value = release.integer("tokens_per_block") if asked is None else asked
    set_by: SetBy = "default" if asked is None else "user"
    latent = release.integer("flash_mla_latent_size")
    if any(spec.kind == "mla" and spec.head_size == latent for spec in scenario.model.layers) and (
        scenario.gpu.compute_capability == release.integers("flash_mla_compute_capability")
    ):
        value, set_by = release.integer("flash_mla_tokens_per_block"), "derived"
    plan.resolved["tokens_per_block"] = Resolved(value, set_by)
    return value


def resolve(scenario: Scenario, release: EngineRelease, plan: EnginePlan, derivation: Derivation) -> Configuration:
    """The configuration of `scenario`, with each value and who set it in `plan.resolved` and its steps."""
    resolved = plan.resolved
    own, factor = model_length(scenario.model, release), float(length_factor(scenario.model, release))
    requested = scenario.integer("max_model_len")
    operands: dict[str, Operand] = {} if requested is None else {"requested": (requested, "tokens")}
    operands["model"] = (scenario.model.max_position, "tokens")
    stretched = "model" if factor == 1 else "ceil(model * factor)"
    if factor != 1:
        operands["factor"] = (factor, "")
    length = served_length(model_length=own, requested=requested)
    set_by: SetBy = "derived" if requested is None or requested > own else "user"
    resolved["max_seq_len"] = Resolved(length, set_by)
    derivation.add(
        "resolve.max_seq_len",
        "Longest sequence",
        stretched if requested is None else f"min(requested, {stretched})",
        length,
        "tokens",
        operands,
        *(("max_seq_len",) if factor == 1 else ("max_seq_len", "rope_length")),
        role="limit",
        note=None if requested is None or requested <= own else "Cut to the model's length with a warning.",
    )
    batch = _integer(scenario, release, plan, "max_batch_size")
    asked = scenario.integer(_PREFIX + "max_num_tokens")
    wanted = release.integer("max_num_tokens") if asked is None else asked
    tokens = step_token_budget(max_num_tokens=wanted, max_seq_len=length, max_batch_size=batch)
    set_by = "derived" if tokens < wanted else "default" if asked is None else "user"
    resolved["max_num_tokens"] = Resolved(tokens, set_by)
    derivation.add(
        "resolve.step_token_budget",
        "Step token budget",
        "min(max_num_tokens, max_seq_len * max_batch_size)",
        tokens,
        "tokens",
        {
            "max_num_tokens": (wanted, "tokens"),
            "max_seq_len": (length, "tokens"),
            "max_batch_size": (batch, "requests"),
        },
        "build_config",
        "token_cap",
        role="limit",
    )
    return _rest(scenario, release, plan, length=length, batch=batch, tokens=tokens)


def _integer(scenario: Scenario, release: EngineRelease, plan: EnginePlan, name: str) -> int:
    asked = scenario.integer(_PREFIX + name)
    value = release.integer(name) if asked is None else asked
    plan.resolved[name] = Resolved(value, "default" if asked is None else "user")
    return value


def _flag(scenario: Scenario, release: EngineRelease, plan: EnginePlan, name: str) -> bool:
    asked = scenario.flag(_PREFIX + name)
    value = bool(release.values[name]) if asked is None else asked
    plan.resolved[name] = Resolved(value, "default" if asked is None else "user")
    return value


def _rest(
    scenario: Scenario, release: EngineRelease, plan: EnginePlan, *, length: int, batch: int, tokens: int
) -> Configuration:
    """The options that take no arithmetic."""
    resolved = plan.resolved
    block = _tokens_per_block(scenario, release, plan)
    share = scenario.decimal(_PREFIX + "free_gpu_memory_fraction")
    fraction = release.number("free_gpu_memory_fraction") if share is None else share
    resolved["free_gpu_memory_fraction"] = Resolved(fraction, "default" if share is None else "user")
    policy = scenario.text(_PREFIX + "capacity_scheduler_policy")
    chosen = str(release.values["capacity_scheduler_policy"]) if policy == "auto" else policy
    resolved["capacity_scheduler_policy"] = Resolved(chosen, "default" if policy == "auto" else "user")
    chunked = _flag(scenario, release, plan, "enable_chunked_prefill")
    padding = _flag(scenario, release, plan, "cuda_graph_padding")
    dtypes = {}
    for name in ("weight_dtype", "kv_dtype"):
        text = scenario.text(name)
        # auto is the checkpoint's KV quantisation where it states one, else the model's 16-bit type.
        declared = scenario.model.kv_cache_dtype if name == "kv_dtype" else None
        dtypes[name] = (declared or scenario.model.dtype) if text == "auto" else text
        resolved[name] = Resolved(dtypes[name], "derived" if text == "auto" else "user")
    return Configuration(
        max_seq_len=length,
        max_batch_size=batch,
        max_num_tokens=tokens,
        tokens_per_block=block,
        fraction=fraction,
        policy=chosen,
        chunked_prefill=chunked,
        graph_padding=padding,
        graph_sizes=scenario.counts(_PREFIX + "cuda_graph_batch_sizes"),
        fp8_weights=dtypes["weight_dtype"] == "fp8",
        kv_dtype=_sixteen_bit(dtypes["kv_dtype"]),
    )


def configuration_of(plan: EnginePlan) -> Configuration | None:
    """The configuration that a plan resolved, read back from it; None when it ended before."""
    resolved = plan.resolved
    if "kv_dtype" not in resolved or plan.weights_bytes is None:
        return None
    values: dict[str, Any] = {name: entry.value for name, entry in resolved.items()}
    return Configuration(
        max_seq_len=values["max_seq_len"],
        max_batch_size=values["max_batch_size"],
        max_num_tokens=values["max_num_tokens"],
        tokens_per_block=values["tokens_per_block"],
        fraction=values["free_gpu_memory_fraction"],
        policy=values["capacity_scheduler_policy"],
        chunked_prefill=values["enable_chunked_prefill"],
        graph_padding=values["cuda_graph_padding"],
        graph_sizes=values["cuda_graph_batch_sizes"],
        fp8_weights=values["weight_dtype"] == "fp8",
        kv_dtype=_sixteen_bit(values["kv_dtype"]),
    )


def _sixteen_bit(dtype: str) -> str:
    """The name under which the data hold a 16-bit type: bf16 and fp16 take the same bytes."""
    return "bf16" if dtype == "fp16" else dtype
