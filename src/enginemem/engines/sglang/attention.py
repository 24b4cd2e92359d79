"""Attention backend, page size, KV dtype and the recurrent-state strategy: chosen after the reserve."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.release import EngineRelease

HOPPER, BLACKWELL = 9, 10
"""Compute capability majors that the backends are chosen by."""


class Attention(NamedTuple):
    """`page_size` in tokens; `kv_cache_dtype` stays `auto` where the model's own type is kept."""

    backend: str
    page_size: int
    kv_cache_dtype: str
    mamba_radix_cache_strategy: str
    disable_overlap_schedule: bool


def default_backend(model: ModelFacts, options: Options, *, major: int) -> str:
    """The backend of a model without a choice of its own: arg_groups/model_override_base.py get_default_attn_backend."""
    topk = options.speculative_eagle_topk
    plain = topk is None or (topk == 1 and options.page_size in (None, 1))
    if model.mla:
        return {HOPPER: "fa3", BLACKWELL: "flashinfer"}.get(major, "triton")
    if major == HOPPER and plain:
        return "fa3"
    if major == BLACKWELL and plain and (options.speculative_algorithm is None or topk is not None):
        return "trtllm_mha" if model.head == model.v_head else "fa4"
    return "triton" if model.sinks else "flashinfer"


def _override(
    release: EngineRelease, model: ModelFacts, options: Options, *, major: int
) -> tuple[str | None, int | None]:
    """Backend and page size that the model's own class declares, where it does (arg_groups/model_overrides)."""
    values, name = release.values, model.class_name
    if model.compressed is not None:
        return "dsv4", release.integer("compressed_page_size")
    if model.side_index[0]:
        return _block_sparse(release, options, major=major)
    unset = options.attention_backend is None
    all_unset = unset and options.prefill_attention_backend is None and options.decode_attention_backend is None
    if name in values["deepseek_classes"]:
        if model.index_head:
            return ("dsa" if all_unset else None), release.integer("dsa_page_size")
        return ("trtllm_mla" if major == BLACKWELL and all_unset else None), None
    if name in values["qwen_hybrid_classes"] and major == BLACKWELL and unset:
        buffered = not options.prefix_cache_off and options.mamba_radix_cache_strategy.startswith("extra_buffer")
        paged = buffered or options.prefix_cache_off or options.speculative_algorithm is not None
        if paged and default_backend(model, options, major=major) == "trtllm_mha":
            return "trtllm_mha", release.integer("hybrid_page_size")
        return "triton", release.integer("page_size")
    if name in values["gpt_oss_classes"] and all_unset:
        return {HOPPER: "fa3", BLACKWELL: "trtllm_mha"}.get(major, "triton"), None
    if name in values["llama4_classes"] and unset:
        return {HOPPER: "fa3", BLACKWELL: "trtllm_mha"}.get(major, "triton"), None
    if name in values["gemma4_classes"] and unset:
        return ("trtllm_mha" if major == BLACKWELL else "triton"), None
    return None, None


def _block_sparse(release: EngineRelease, options: Options, *, major: int) -> tuple[str | None, int | None]:
    """Backend and page of MiniMax M3 (model_overrides/minimax_m3.py): the page is one block of its sparse attention,
    unless the user gave another or the part has no backend of its own here."""
    names = {HOPPER: "fa3", BLACKWELL: "trtllm_mha" if options.kv_cache_dtype == "fp8_e4m3" else "fa4"}
    given = (options.attention_backend, options.prefill_attention_backend, options.decode_attention_backend)
    own = names.get(major) if not any(given) else None
    if own is None or options.page_size is not None:
        return own, options.page_size
    return own, release.integer("block_sparse_page_size")


def constrained_page_size(
    release: EngineRelease, page_size: int | None, backends: tuple[str | None, ...], *, mla: bool, major: int
) -> int:
    """The page size in tokens after the backends' constraints; a page that a backend cannot read is replaced.

    `backends` are the general, prefill and decode backends. Source rules: arg_groups/overrides.py
    _mla_backend_page_constraints, _fa4_page_constraint, _page_size_default.
    """
    forced = release.integer("forced_page_size")
    reading = (backends[0], backends[2])  # these kernels constrain the side that decodes
    for fixed in release.values["fixed_page_backends"]:
        if fixed in reading:
            page_size = forced
    for backend in release.values["mla_page_backends"]:
        if backend in reading and page_size not in release.integers("mla_page_sizes"):
            page_size = forced
    if "trtllm_mha" in backends and page_size not in release.integers("mha_page_sizes"):
        page_size = forced
    if "fa4" in backends and not mla and major == BLACKWELL:
        page_size = release.integer("fa4_page_size")
    return release.integer("page_size") if page_size is None else page_size


def attention(release: EngineRelease, model: ModelFacts, options: Options, *, capability: tuple[int, int]) -> Attention:
    """Backend, page size, KV dtype and state strategy of a model on a GPU of compute capability `capability`.

    Standing as the sources of the data file say: measured for the model families of the vectors.
    """
    major = capability[0]
    kv_dtype = options.kv_cache_dtype
    if model.compressed is not None and kv_dtype == "auto":
        kv_dtype = "fp8_e4m3"
    elif model.index_head and kv_dtype == "auto":
        kv_dtype = "fp8_e4m3" if major >= BLACKWELL else "bfloat16"
    elif model.index_head and kv_dtype == "bf16":
        kv_dtype = "bfloat16"  # the other name of the same type
    declared, page = _override(release, model, options, major=major)
    prefill, decode = options.prefill_attention_backend, options.decode_attention_backend
    backend = declared or options.attention_backend
    if prefill is not None and prefill == decode:
        backend = prefill
    if backend is None:
        backend = default_backend(model, options, major=major)
    page = options.page_size if page is None else page
    strategy, no_overlap = _state_strategy(release, model, options, page_size=page)
    final = constrained_page_size(release, page, (backend, prefill, decode), mla=model.mla, major=major)
    if backend == "fa3" and kv_dtype == "fp8_e5m2":
        backend = "triton"
    return Attention(backend, final, kv_dtype, strategy, no_overlap or options.pp_size > 1)


def _state_strategy(
    release: EngineRelease, model: ModelFacts, options: Options, *, page_size: int | None
) -> tuple[str, bool]:
    """How recurrent state is kept in the prefix cache, and whether overlap scheduling must go (overrides.py
    _mamba_radix_cache_resolution)."""
    strategy, no_overlap = options.mamba_radix_cache_strategy, options.disable_overlap_schedule
    if model.linear is None or options.prefix_cache_off or strategy != "auto":
        return strategy, no_overlap
    wanted = not no_overlap or (page_size or 1) > 1
    supported = model.class_name in release.values["extra_buffer_classes"] and options.linear_attn_backend == "triton"
    return ("extra_buffer", no_overlap) if wanted and supported else ("no_buffer", True)
