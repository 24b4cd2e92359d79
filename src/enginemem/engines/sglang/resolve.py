"""Stage 0: the resolved configuration, in the order in which the engine resolves it (arg_groups/pipeline.py)."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.engines.sglang import reserve as held
from enginemem.engines.sglang.attention import HOPPER, attention
from enginemem.engines.sglang.dispatch import decode_graph_sizes, prefill_graph_sizes
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.release import EngineRelease
from enginemem.units import round_up

DISABLED = "disabled"


class Configuration(NamedTuple):
    """What the server runs with. Tokens and requests are those of one scheduler; `reserve` is None where the user set
    the fraction. Graph sizes are the lists before the request table filters them.
    """

    mem_fraction_static: float
    chunked_prefill_size: int
    max_prefill_tokens: int
    decode_graph_backend: str
    decode_graph_max_bs: int
    decode_graph_count: int
    prefill_graph_backend: str
    prefill_graph_max_tokens: int
    prefill_graph_count: int
    page_size: int
    attention_backend: str
    kv_cache_dtype: str
    schedule_policy: str
    schedule_conservativeness: float
    max_running_requests: int | None
    mamba_radix_cache_strategy: str
    disable_overlap_schedule: bool
    activation_tokens: int
    reserved_prefill_count: int
    reserve: held.Reserve | None
    decode_graph_sizes: tuple[int, ...]

    @property
    def reserve_mib(self) -> float | None:
        """The reserve, MiB; None where the user set the fraction."""
        return None if self.reserve is None else self.reserve.total


def _backends(release: EngineRelease, model: ModelFacts, options: Options) -> tuple[str, str, bool, bool]:
    """Decode and prefill graph backends before the roles, and whether the user fixed each."""
    decode, prefill = release.values["decode_graph_backend"], release.values["prefill_graph_backend"]
    if options.disable_cuda_graph:
        decode = prefill = DISABLED
    if options.disable_prefill_cuda_graph:
        prefill = DISABLED
    if options.disable_decode_cuda_graph:
        decode = DISABLED
    decode = options.cuda_graph_backend_decode or decode
    prefill = options.cuda_graph_backend_prefill or prefill
    off = options.disable_cuda_graph
    decode_locked = off or options.disable_decode_cuda_graph or options.cuda_graph_backend_decode is not None
    prefill_locked = off or options.disable_prefill_cuda_graph or options.cuda_graph_backend_prefill is not None
    if not prefill_locked and prefill_excluded(release, model, options):
        prefill = DISABLED
    return decode, prefill, decode_locked, prefill_locked


def prefill_excluded(release: EngineRelease, model: ModelFacts, options: Options) -> bool:
    """Whether breakable prefill graphs are turned off without being asked (cuda_graph_hook.py
    disable_breakable_cudagraph_if_incompatible)."""
    multimodal = model.vision is not None and model.class_name not in release.values["prefill_graph_multimodal"]
    return (
        options.pp_size > 1
        or options.attn_cp_size > 1
        or options.dcp_size > 1
        or options.enable_two_batch_overlap
        or options.moe_a2a_backend not in release.values["prefill_graph_a2a"]
        or multimodal
        or model.compressed is not None
    )


class _Prefill(NamedTuple):
    largest: int
    sizes: tuple[int, ...]


def _deepep_sizes(release: EngineRelease, options: Options) -> tuple[int | None, tuple[int, ...] | None]:
    """Largest prefill graph and sizes that DeepEP settles before the reserve; None where it leaves them alone."""
    limit = options.cuda_graph_max_bs_prefill or release.integer("prefill_graph_deepep_max")
    sizes = options.cuda_graph_bs_prefill
    if sizes is None:
        sizes = prefill_graph_sizes(release, limit)
    multiple = release.integer("prefill_graph_deepep_multiple")
    aligned = tuple(sorted({round_up(size, multiple) for size in sizes}))
    if aligned == tuple(sorted(sizes)):
        return options.cuda_graph_max_bs_prefill, options.cuda_graph_bs_prefill
    return aligned[-1], aligned


def _prefill_graphs(
    release: EngineRelease, model: ModelFacts, options: Options, *, chunk: int, backend: str
) -> _Prefill:
    """The prefill capture list as the reserve sees it (memory_hook.py handle_gpu_memory_settings)."""
    largest, sizes = options.cuda_graph_max_bs_prefill, options.cuda_graph_bs_prefill
    breakable = release.values["prefill_graph_backend"]
    if options.moe_a2a_backend == "deepep" and backend == breakable:
        largest, sizes = _deepep_sizes(release, options)
    if largest is None:
        largest = release.integer("prefill_graph_mla_max") if model.mla else chunk
        if options.pp_size > 1 and backend == breakable and options.cuda_graph_bs_prefill is None:
            largest = min(largest, release.integer("prefill_graph_pp_max"))
        if options.max_total_tokens is not None:
            largest = min(largest, options.max_total_tokens)
        if "llama-2" in options.model_path.lower():
            largest = min(largest, release.integer("prefill_graph_llama2_max"))
    return _Prefill(largest, prefill_graph_sizes(release, largest) if sizes is None else sizes)


def _decode_max(
    release: EngineRelease,
    model: ModelFacts,
    options: Options,
    *,
    default: int,
    mib: float | None,
    capability: tuple[int, int],
) -> int:
    """The largest decode graph, requests: the class default, clipped by a request cap the user set."""
    if options.cuda_graph_bs_decode is not None:
        return max(options.cuda_graph_bs_decode)
    if options.cuda_graph_max_bs_decode is not None:
        return options.cuda_graph_max_bs_decode
    cap = options.max_running_requests
    if cap is None:
        return default
    large_hopper = mib is not None and mib >= release.integer("hopper_vision_capacity_mib") and capability[0] == HOPPER
    raised = large_hopper and model.class_name.startswith("Qwen3VL")
    if raised and default < cap <= release.integer("hopper_vision_graph_requests"):
        return cap
    return min(default, cap)


def _fraction(
    release: EngineRelease, model: ModelFacts, options: Options, *, mib: float | None, reserved: held.Reserve
) -> float:
    fraction = held.mem_fraction_static(release, mib=mib, reserve_mib=reserved.total)
    if model.vision is None or options.language_only or options.disaggregation_mode == "decode":
        return fraction
    return held.vision_fraction(release, fraction, model.vision)


def configuration(
    release: EngineRelease, model: ModelFacts, options: Options, *, mib: float | None, capability: tuple[int, int]
) -> Configuration:
    """The configuration of a server on GPUs of `mib` MiB (None: no capacity readable) and this compute capability.

    The reserve sees the chunk before attention data parallelism divides it; attention backend, page size, KV type and
    the cap of speculative decoding come later and leave it alone.
    """
    role, dp = options.disaggregation_mode, options.attention_dp
    decode_backend, prefill_backend, decode_locked, prefill_locked = _backends(release, model, options)
    reserve_prefill = prefill_backend
    if role == "prefill" and not decode_locked:
        decode_backend = DISABLED
    if role == "decode" and not prefill_locked:
        prefill_backend = DISABLED
    defaults = held.capacity_defaults(release, mib, tp=options.tp_size)
    chunk = defaults.chunked_prefill_size if options.chunked_prefill_size is None else options.chunked_prefill_size
    prefill_tokens = options.max_prefill_tokens or release.integer("max_prefill_tokens")
    decode_max = _decode_max(release, model, options, default=defaults.decode_graph, mib=mib, capability=capability)
    speculative = options.speculative_algorithm is not None
    decode_sizes = options.cuda_graph_bs_decode or decode_graph_sizes(
        release, decode_max, speculative=speculative, padding=not options.disable_cuda_graph_padding
    )
    prefill = _prefill_graphs(release, model, options, chunk=chunk, backend=reserve_prefill)
    active = held.activation_tokens(
        release,
        role=role,
        chunk=chunk,
        max_prefill_tokens=prefill_tokens,
        decode_requests=options.max_running_requests or decode_max or 1,
        draft_tokens=options.speculative_num_draft_tokens or 1,
    )
    reserved: held.Reserve | None = None
    fraction = options.mem_fraction_static
    if fraction is None:
        deepep = options.moe_a2a_backend == "deepep"
        graphs = held.graph_reserve(
            release,
            role=role,
            decode_graphs=decode_backend != DISABLED,
            decode_max=decode_max,
            attention_dp=dp,
            prefill_graphs=prefill_backend != DISABLED,
            breakable=prefill_backend == release.values["prefill_graph_backend"],
            prefill_count=len(prefill.sizes),
            mla=model.mla,
            deepep=deepep,
        )
        reserved = held.reserve(
            release,
            mib=mib,
            activation=active,
            gpus=options.tp_size * options.pp_size,
            graphs=graphs,
            deepep=deepep and role != "prefill" and decode_backend != DISABLED,
        )
        fraction = _fraction(release, model, options, mib=mib, reserved=reserved)
    chosen = attention(release, model, options, capability=capability)
    if chosen.backend in release.values["graphless_backends"]:
        decode_backend = prefill_backend = DISABLED
    if chosen.backend == "trtllm_mla" and model.class_name == "DeepseekV3ForCausalLM" and not prefill_locked:
        prefill_backend = DISABLED
    conservativeness = options.schedule_conservativeness
    if conservativeness is None:
        conservativeness = release.number("schedule_conservativeness")
    largest, count = prefill.largest, len(prefill.sizes)
    if dp > 1:
        conservativeness *= release.number("attention_dp_conservativeness")
        chunk //= dp
        if prefill_backend != DISABLED and largest > chunk and options.cuda_graph_max_bs_prefill is None:
            largest = chunk
            if options.cuda_graph_bs_prefill is None:
                count = len(prefill_graph_sizes(release, chunk))
    if options.moe_a2a_backend == "deepep" and options.deepep_mode == "normal":
        decode_backend = prefill_backend = DISABLED
    cap = options.max_running_requests
    if cap is None and (options.speculative_algorithm or "").upper() in release.values["speculative_capped"]:
        cap = release.integer("speculative_request_cap")
    elif cap is None and model.compressed is not None:
        cap = release.integer("compressed_request_cap")
    return Configuration(
        mem_fraction_static=fraction,
        chunked_prefill_size=chunk,
        max_prefill_tokens=prefill_tokens,
        decode_graph_backend=decode_backend,
        decode_graph_max_bs=decode_max,
        decode_graph_count=len(decode_sizes),
        prefill_graph_backend=prefill_backend,
        prefill_graph_max_tokens=largest,
        prefill_graph_count=count,
        page_size=chosen.page_size,
        attention_backend=chosen.backend,
        kv_cache_dtype=chosen.kv_cache_dtype,
        schedule_policy=options.schedule_policy or release.values["schedule_policy"],
        schedule_conservativeness=conservativeness,
        max_running_requests=cap,
        mamba_radix_cache_strategy=chosen.mamba_radix_cache_strategy,
        disable_overlap_schedule=chosen.disable_overlap_schedule,
        activation_tokens=active,
        reserved_prefill_count=len(prefill.sizes),
        reserve=reserved,
        decode_graph_sizes=decode_sizes,
    )
