"""Readers of Mamba hybrids whose configurations were not at hand: written from the classes' fields, unverified."""

from __future__ import annotations

from enginemem.architecture import LayerSpec, Recurrent
from enginemem.hf_config.decoder import norms, said, spec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_LAYERS, Fields
from enginemem.hf_config.parts import Attention, Moe, Tensors, attention, experts, mlp, norm, vector
from enginemem.hf_config.shape import Decoded, Layer, Shape, outer_tensors, read_moe, read_shape
from enginemem.hf_config.states import mamba2_tensors, mamba_facts, matrix, state_spec
from enginemem.tensors import FP32

_GRANITE_LAYERS = {"mamba": "mamba", "linear_attention": "mamba", "attention": "full", "full_attention": "full"}


def _attention(fields: Fields, family: Family, shape: Shape) -> Attention:
    return Attention(
        shape.hidden, shape.heads, shape.kv_heads, shape.head, shape.head,
        bias=said(fields, family, "biases"), output_bias=said(fields, family, "output_bias"),
    )  # fmt: skip


def read_granite(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Granite 4: Mamba-2 or attention as layer_types says, a shared MLP in every layer, experts where there are any."""
    shape = read_shape(fields, outer, family)
    names = fields.first("layer_types", "layers_block_type")
    kinds = fields.per_layer(names, shape.layers, _GRANITE_LAYERS)
    kinds = ["full"] * shape.layers if kinds is None else kinds
    moe = read_moe(fields, family)
    moe = None if moe is None else moe._replace(width=max(shape.intermediate, 1), shared=0)
    shared = fields.count("shared_intermediate_size", 0, low=0)
    facts = _attention(fields, family, shape)
    state = mamba_facts(fields, shape.hidden) if "mamba" in kinds else None
    conv_bias, bias = fields.flag("mamba_conv_bias", True), fields.flag("mamba_proj_bias", False)
    fields.check()
    rest = norms(shape, 2)
    if shared:
        rest += mlp(shape.hidden, shared, shape.form, prefix="shared_mlp")
    if moe is not None:
        rest += experts(moe, shape.hidden, shape.form, "block_sparse_moe")
    full = Layer((spec("full", shape.kv_heads, shape.head, shape.head),), attention(facts, shape.form) + rest)
    by_kind = {"full": full}
    if state is not None:
        tensors = mamba2_tensors(state, shape.hidden, shape.form, prefix="mamba", conv_bias=conv_bias, bias=bias)
        by_kind["mamba"] = Layer((state_spec(state),), tensors + rest)
    layers = [by_kind[kind] for kind in kinds]
    count = shape.layers if moe is not None else 0
    rotary = shape.head if fields.values.get("position_embedding_type") == "rope" else 0
    return Decoded(
        shape, layers, outer_tensors(shape), moe, count, rotary, biases=facts.bias, output_bias=facts.output_bias
    )


def read_falcon(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, so each caches both."""
    shape = read_shape(fields, outer, family)
    facts, state = _attention(fields, family, shape), mamba_facts(fields, shape.hidden)
    conv_bias, bias = fields.flag("mamba_conv_bias", True), fields.flag("mamba_proj_bias", False)
    gated_norm, mlp_bias = fields.flag("mamba_rms_norm", False), fields.flag("mlp_bias", False)
    fields.check()
    tensors = attention(facts, shape.form) + norms(shape, 2)
    tensors += mamba2_tensors(
        state, shape.hidden, shape.form, prefix="mamba", conv_bias=conv_bias, bias=bias, gated_norm=gated_norm
    )
    tensors += mlp(shape.hidden, shape.intermediate, shape.form, bias=mlp_bias, prefix="feed_forward")
    layer = Layer((spec("full", shape.kv_heads, shape.head, shape.head), state_spec(state)), tensors)
    return Decoded(shape, [layer] * shape.layers, outer_tensors(shape), rotary=shape.head, biases=facts.bias)


def read_jamba(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Jamba: Mamba-1 with an attention layer at intervals, experts at intervals; no rotary embedding."""
    shape = read_shape(fields, outer, family)
    period, offset = fields.count("attn_layer_period", 8, high=MOST_LAYERS), fields.count("attn_layer_offset", 4, low=0)
    every, shift = (
        fields.count("expert_layer_period", 2, high=MOST_LAYERS),
        fields.count("expert_layer_offset", 1, low=0),
    )
    inner = shape.hidden * fields.count("mamba_expand", 2, high=64)
    states, kernel = fields.count("mamba_d_state", 16, high=65_536), fields.count("mamba_d_conv", 4, low=2, high=1_024)
    rank = fields.values.get("mamba_dt_rank", "auto")
    rank = -(-shape.hidden // 16) if rank == "auto" else fields.count("mamba_dt_rank")
    conv_bias, bias = fields.flag("mamba_conv_bias", True), fields.flag("mamba_proj_bias", False)
    facts, moe = _attention(fields, family, shape), read_moe(fields, family)
    fields.check()
    moe = None if moe is None or moe.total == 1 else moe
    state = Recurrent("mamba1", inner, 1, states, inner, kernel)
    mixer = _mamba1(shape, inner, states, rank, kernel, conv_bias=conv_bias, bias=bias)
    own, around = attention(facts, shape.form), norms(shape, 2)
    dense = mlp(shape.hidden, shape.intermediate, shape.form, prefix="feed_forward")
    mixed = experts(moe or Moe(1, 1, 1), shape.hidden, shape.form, "feed_forward")
    caches: dict[bool, LayerSpec] = {
        True: spec("full", shape.kv_heads, shape.head, shape.head),
        False: state_spec(state),
    }
    layers, sparse = [], 0
    for index in range(shape.layers):
        full, is_moe = index % period == offset, moe is not None and index % every == shift
        sparse += is_moe
        layers.append(Layer((caches[full],), (own if full else mixer) + around + (mixed if is_moe else dense)))
    return Decoded(shape, layers, outer_tensors(shape), moe, sparse, 0)


def _mamba1(shape: Shape, inner: int, states: int, rank: int, kernel: int, *, conv_bias: bool, bias: bool) -> Tensors:
    form, hidden, name = shape.form, shape.hidden, "mamba"
    tensors = [
        matrix(f"{name}.in_proj", 2 * inner, hidden, form),
        matrix(f"{name}.conv1d", inner, kernel, form, linear=False),
        matrix(f"{name}.x_proj", rank + 2 * states, inner, form, split="columns"),
        matrix(f"{name}.dt_proj", inner, rank, form),
        vector(f"{name}.dt_proj.bias", inner, form, split=True),
        matrix(f"{name}.A_log", inner, states, FP32, linear=False),
        vector(f"{name}.D", inner, FP32, split=True),
        matrix(f"{name}.out_proj", hidden, inner, form, split="columns"),
        norm(f"{name}.dt_layernorm", rank, form),
        norm(f"{name}.b_layernorm", states, form),
        norm(f"{name}.c_layernorm", states, form),
    ]
    if conv_bias:
        tensors.append(vector(f"{name}.conv1d.bias", inner, form, split=True))
    if bias:
        tensors.append(vector(f"{name}.in_proj.bias", 2 * inner, form, split=True))
        tensors.append(vector(f"{name}.out_proj.bias", hidden, form))
    return tuple(tensors)
