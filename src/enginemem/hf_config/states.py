"""Recurrent states: what a layer keeps for a request, and the matrices around it."""

from __future__ import annotations

from enginemem.architecture import LayerSpec, Recurrent
from enginemem.hf_config.fields import Fields
from enginemem.hf_config.parts import Tensors, norm, vector
from enginemem.tensors import FP32, Format, Split, Tensor

NO_CACHE = LayerSpec("none", 1, 0, 0, 0)
STATE_TYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "auto": None}


def state_spec(state: Recurrent) -> LayerSpec:
    """The cache of one recurrent layer."""
    shapes = ((state.channels, state.kernel - 1), (state.heads, state.rows, state.columns))
    return LayerSpec("recurrent", 1, 0, 0, 0, states=shapes, recurrent=state)


def state_type(fields: Fields, *names: str) -> str | None:
    """The element type of the state that the configuration asks for, None when it says nothing."""
    name = fields.first(*names)
    text = fields.text(name, "auto")
    if text not in STATE_TYPES:
        fields.problem(name, ", ".join(STATE_TYPES))
    return STATE_TYPES.get(text)


def matrix(
    name: str,
    rows: int,
    columns: int,
    form: Format,
    *,
    split: Split = "rows",
    heads: int = 0,
    fused: str = "",
    linear: bool = True,
) -> Tensor:
    """A matrix of a recurrent layer, split by its output features unless said otherwise."""
    return Tensor(name, "recurrent", rows, columns, split, heads, fused=fused, linear=linear, form=form)


def gdn_tensors(state: Recurrent, key_heads: int, hidden: int, form: Format) -> Tensors:
    """Projections, convolution and decays of one gated delta layer."""
    name, keys, values = "linear_attn", key_heads * state.columns, state.heads * state.rows
    return (
        matrix(f"{name}.in_proj_qkv", 2 * keys + values, hidden, form, heads=key_heads, fused="qkvz"),
        matrix(f"{name}.in_proj_z", values, hidden, form, heads=state.heads, fused="qkvz"),
        matrix(f"{name}.in_proj_b", state.heads, hidden, form, heads=state.heads, fused="ba"),
        matrix(f"{name}.in_proj_a", state.heads, hidden, form, heads=state.heads, fused="ba"),
        matrix(f"{name}.conv1d", state.channels, state.kernel, form, heads=key_heads, linear=False),
        vector(f"{name}.dt_bias", state.heads, form, split=True, heads=state.heads),
        vector(f"{name}.A_log", state.heads, FP32, split=True, heads=state.heads),
        norm(f"{name}.norm", state.rows, form),
        matrix(f"{name}.out_proj", hidden, values, form, split="columns", heads=state.heads),
    )


def mamba2(heads: int, head: int, groups: int, state: int, kernel: int, dtype: str | None) -> Recurrent:
    """The state of a Mamba-2 layer."""
    return Recurrent("mamba2", heads, head, state, heads * head + 2 * groups * state, kernel, groups, state, dtype)


def mamba2_tensors(
    state: Recurrent, hidden: int, form: Format, *, prefix: str, conv_bias: bool, bias: bool, gated_norm: bool = True
) -> Tensors:
    """Projections, convolution and decays of one Mamba-2 layer; groups are copied where GPUs outnumber them."""
    inner, groups, heads = state.heads * state.rows, state.groups * state.group_width, state.heads
    tensors = [
        matrix(f"{prefix}.in_proj", 2 * inner, hidden, form, heads=heads, fused="in_proj"),
        matrix(f"{prefix}.in_proj", 2 * groups, hidden, form, split="heads", heads=state.groups, fused="in_proj"),
        matrix(f"{prefix}.in_proj", heads, hidden, form, heads=heads, fused="in_proj"),
        matrix(f"{prefix}.conv1d", inner, state.kernel, form, heads=heads, linear=False),
        matrix(f"{prefix}.conv1d", 2 * groups, state.kernel, form, split="heads", heads=state.groups, linear=False),
        vector(f"{prefix}.A_log", heads, FP32, split=True, heads=heads),
        vector(f"{prefix}.D", heads, form, split=True, heads=heads),
        vector(f"{prefix}.dt_bias", heads, form, split=True, heads=heads),
        matrix(f"{prefix}.out_proj", hidden, inner, form, split="columns", heads=heads),
    ]
    if gated_norm:
        tensors.append(Tensor(f"{prefix}.norm", "norm", inner, 1, "rows", heads, form=form))
    if conv_bias:
        tensors.append(vector(f"{prefix}.conv1d.bias", inner, form, split=True, heads=heads))
        tensors.append(vector(f"{prefix}.conv1d.bias", 2 * groups, form, split=True, heads=state.groups, copied=True))
    if bias:
        tensors.append(vector(f"{prefix}.in_proj.bias", 2 * inner + heads, form, split=True, heads=heads))
        tensors.append(vector(f"{prefix}.in_proj.bias", 2 * groups, form, split=True, heads=state.groups, copied=True))
        tensors.append(vector(f"{prefix}.out_proj.bias", hidden, form))
    return tuple(tensors)


def mamba_facts(fields: Fields, hidden: int, *, dtype: str | None = None) -> Recurrent:
    """A Mamba-2 state from the fields with the prefix `mamba_` (Granite 4, Falcon-H1)."""
    inner = fields.optional("mamba_d_ssm") or hidden * fields.count("mamba_expand", 2, high=64)
    heads = fields.count("mamba_n_heads", high=65_536)
    head = fields.count(fields.first("mamba_d_head", "mamba_head_dim"), max(inner // heads, 1), high=65_536)
    return mamba2(
        heads, head, fields.count("mamba_n_groups", 1, high=65_536), fields.count("mamba_d_state", high=65_536),
        fields.count("mamba_d_conv", 4, low=2, high=1_024), dtype,
    )  # fmt: skip


def kda_tensors(state: Recurrent, hidden: int, form: Format, *, full_gate: bool = False) -> Tensors:
    """Projections, convolutions and decays of one KDA layer; the gate is one matrix (`full_gate`) or two of low rank."""
    name, heads = "self_attn", state.heads
    wide, head = heads * state.rows, state.rows
    tensors = [matrix(f"{name}.{part}_proj", wide, hidden, form, heads=heads, fused="qkvgfab") for part in "qkv"]
    tensors += [matrix(f"{name}.{part}_conv1d", wide, state.kernel, form, heads=heads, linear=False) for part in "qkv"]
    if full_gate:
        tensors.append(matrix(f"{name}.g_proj", wide, hidden, form, heads=heads, fused="qkvgfab"))
    for part in "f" if full_gate else "fg":
        tensors.append(matrix(f"{name}.{part}_a_proj", head, hidden, form, split="whole"))
        tensors.append(matrix(f"{name}.{part}_b_proj", wide, head, form, heads=heads))
    tensors += [
        matrix(f"{name}.b_proj", heads, hidden, form, heads=heads),
        vector(f"{name}.A_log", heads, FP32, split=True, heads=heads),
        vector(f"{name}.dt_bias", wide, FP32, split=True, heads=heads),
        norm(f"{name}.o_norm", head, form),
        matrix(f"{name}.o_proj", hidden, wide, form, split="columns", heads=heads),
    ]
    return tuple(tensors)
