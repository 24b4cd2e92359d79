"""Bytes that one token, one request's recurrent state and one window-layer token take on one GPU."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.engines.sglang.attention import BLACKWELL
from enginemem.engines.sglang.model import LinearAttention, ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.release import EngineRelease
from enginemem.units import ceil_div


class Cell(NamedTuple):
    """Bytes per token and GPU: of all full-attention layers, and of all window layers of a hybrid model (else 0)."""

    full: int
    window: int


def kv_element_bytes(release: EngineRelease, kv_cache_dtype: str) -> int | None:
    """Bytes of one KV element (`auto`: 16-bit models); None for a type whose scales no rule here covers."""
    for row in release.tables["kv_element_bytes"]:
        if row["kv_cache_dtype"] == kv_cache_dtype:
            width: int = row["bytes"]
            return width
    return None


def heads_per_gpu(heads: int, *, attention_tp: int) -> int:
    """KV heads that one GPU keeps: replicated once there are more GPUs than heads (ModelConfig.get_num_kv_heads)."""
    return max(1, heads // attention_tp)


def stage_layers(layers: int, *, pp: int) -> int:
    """Layers of the largest pipeline stage: the surplus goes to the last stages, one layer each."""
    return ceil_div(layers, pp)


def mla_row(
    release: EngineRelease, model: ModelFacts, options: Options, *, kv_cache_dtype: str, element_bytes: int, major: int
) -> int:
    """Bytes of one MLA row in one layer; FP8 rows of DSA models carry scales unless their kernels read raw rows.

    Source rule: kv_cache_configurator.py calculate_mla_kv_cache_dim.
    """
    raw = (model.latent + model.rope) * element_bytes
    if not model.index_head or kv_cache_dtype != "fp8_e4m3":
        return raw
    default = "trtllm" if major >= BLACKWELL else "flashmla_kv"
    prefill, decode = options.dsa_prefill_backend or default, options.dsa_decode_backend or default
    reading = {"prefill": (prefill,), "decode": (decode,)}.get(options.disaggregation_mode, (prefill, decode))
    if "trtllm" in reading or prefill == decode == "tilelang":
        return raw
    scales = model.latent // release.integer("index_scale_block") * release.integer("index_scale_bytes")
    return model.latent + scales + model.rope * release.integer("rope_bytes")


def side_index_bytes(release: EngineRelease, *, kv_cache_dtype: str, major: int) -> int:
    """Bytes of one element of an index key beside keys and values: the model's type, one byte where attention runs in
    fp8 (memory_pool.py get_minimax_sparse_index_dtype, server_args.py m3_fp8_attn_gemm_enabled)."""
    return 1 if major == BLACKWELL and kv_cache_dtype == "fp8_e4m3" else release.integer("block_sparse_index_bytes")


def kv_cell(
    release: EngineRelease, model: ModelFacts, options: Options, *, kv_cache_dtype: str, element_bytes: int, major: int
) -> Cell:
    """Bytes per token on one GPU of the largest pipeline stage.

    Source rules: pool_configurator.py DefaultPoolConfigurator._compute_cell_size, HybridSWAPoolConfigurator.
    """
    layers = stage_layers(model.full_layers, pp=options.pp_size)
    if model.mla:
        row = mla_row(release, model, options, kv_cache_dtype=kv_cache_dtype, element_bytes=element_bytes, major=major)
        block, scale = release.integer("index_scale_block"), release.integer("index_scale_bytes")
        return Cell(layers * (row + model.index_head + model.index_head // block * scale), 0)
    heads = heads_per_gpu(model.kv_heads, attention_tp=options.attention_tp)
    token = heads * (model.head + model.v_head) * element_bytes
    if model.window is None:
        count, width = model.side_index
        own_index = side_index_bytes(release, kv_cache_dtype=kv_cache_dtype, major=major) * width
        return Cell(layers * token + stage_layers(count, pp=options.pp_size) * own_index, 0)
    own = model.window
    if own.kv_heads:
        token = heads_per_gpu(own.kv_heads, attention_tp=options.attention_tp) * (own.head + own.v_head) * element_bytes
    full = heads * (model.head + model.v_head) * element_bytes
    return Cell(layers * full, stage_layers(own.layers, pp=options.pp_size) * token)


def state_bytes(
    release: EngineRelease, linear: LinearAttention, *, attention_tp: int, pp: int, ssm_dtype: str | None
) -> int:
    """Bytes of one recurrent state on one GPU, all recurrent layers of the largest stage (configs/mamba_utils.py)."""
    ssm_bytes = release.integer("mamba_ssm_bytes")
    if (ssm_dtype or linear.dtype) in ("bfloat16", "float16"):
        ssm_bytes = release.integer("mamba_conv_bytes")
    shared = 2 * linear.groups * linear.group_width
    channels = (linear.conv_channels - shared) // attention_tp
    channels += 2 * max(1, linear.groups // attention_tp) * linear.group_width
    conv = channels * (linear.kernel - 1) * release.integer("mamba_conv_bytes")
    ssm = linear.heads // attention_tp * linear.rows * linear.columns * ssm_bytes
    return (conv + ssm) * stage_layers(linear.layers, pp=pp)


def state_slots(release: EngineRelease, *, radix_cache: bool, strategy: str, overlap: bool) -> int:
    """State slots that one running request needs (KVCacheConfigurator._calculate_mamba_ratio)."""
    if not radix_cache:
        return 1
    slots = release.integer("mamba_slots")
    if strategy == "extra_buffer":
        slots += release.integer("mamba_slots_overlap") if overlap else 1
    elif strategy == "extra_buffer_lazy":
        slots += 1
    return slots
