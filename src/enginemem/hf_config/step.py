"""The reader of Step 3.5 and 3.7: window layers with query heads of their own, a gate for each head."""

from __future__ import annotations

from enginemem.hf_config.decoder import norms, said, spec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_LAYERS, Fields
from enginemem.hf_config.parts import Attention, Moe, Tensors, attention, experts, mlp
from enginemem.hf_config.shape import Decoded, Layer, Shape, outer_tensors, read_moe, read_shape, window_kinds
from enginemem.tensors import Tensor

SAME_HEADS = "attention_other_setting is not in the file: window layers then have the heads of the full ones"


def read_step(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Step 3.5 and 3.7: full and window layers, dense layers first, experts with a shared one then.

    Source rules: step3p5.py at vLLM 0.32.0, configuration_step3p7.py of Transformers for what the file leaves out.
    """
    shape = read_shape(fields, outer, family)
    if not fields.given("layer_types"):
        fields.problem("layer_types", "full_attention or sliding_attention for each layer")
    kinds, window = window_kinds(fields, family, shape.layers)
    full = Attention(
        shape.hidden, shape.heads, shape.kv_heads, shape.head, shape.head,
        bias=said(fields, family, "biases"), query_norm="head",
    )  # fmt: skip
    other = fields.inner("attention_other_setting")
    facts = {"full": full, "sliding": full if other is None else _other(other, full)}
    gated = fields.flag("use_head_wise_attn_gate", True)
    moe = read_moe(fields, family)
    sparse = _sparse(fields, shape.layers) if moe is not None else [False] * shape.layers
    if not all(sparse) and not shape.intermediate:
        fields.problem("intermediate_size", "the width of the layers without experts")
    fields.check()
    around, dense = norms(shape, 2), mlp(shape.hidden, shape.intermediate, shape.form)
    mixed = _experts(moe, shape)
    layers = []
    for kind, is_moe in zip(kinds, sparse, strict=True):
        own = facts[kind]
        tensors = attention(own, shape.form) + (_gate(own, shape) if gated else ()) + around
        cache = spec(kind, own.kv_heads, own.head, own.v_head, window=window)
        layers.append(Layer((cache,), tensors + (mixed if is_moe else dense)))
    notes = (SAME_HEADS,) if other is None and "sliding" in kinds else ()
    outside = outer_tensors(shape)
    return Decoded(shape, layers, outside, moe, sum(sparse), shape.head, query_norm=True, biases=full.bias, notes=notes)


def _other(other: Fields, full: Attention) -> Attention:
    """The heads of the window layers."""
    if other.text("attention_type", "sliding_attention") != "sliding_attention":
        other.problem("attention_type", "sliding_attention")
    heads = other.count("num_attention_heads", full.heads, high=65_536)
    groups = other.count("num_attention_groups", full.kv_heads, high=65_536)
    head = other.count("head_dim", full.head, high=65_536)
    if heads % groups:
        other.problem("num_attention_groups", f"a divisor of num_attention_heads ({heads})")
    return full._replace(heads=heads, kv_heads=groups, head=head, v_head=head)


def _sparse(fields: Fields, layers: int) -> list[bool]:
    """Which layers hold experts: those that moe_layers_enum lists, or all after the first dense ones."""
    value = fields.values.get("moe_layers_enum")
    if value is None:
        first = fields.count("first_k_dense_replace", low=0, high=MOST_LAYERS)
        return [index >= first for index in range(layers)]
    entries = value[: 8 * MOST_LAYERS].split(",") if isinstance(value, str) else fields.items("moe_layers_enum") or ()
    texts = [str(entry).strip() for entry in entries if isinstance(entry, (str, int))]
    listed = {int(text) for text in texts if text.isdecimal() and len(text) < 6}
    if not listed or len(texts) != len(entries) or len(listed) != len(texts):
        fields.problem("moe_layers_enum", "the indices of layers")
    return [index in listed for index in range(layers)]


def _gate(own: Attention, shape: Shape) -> Tensors:
    return (
        Tensor(
            "self_attn.g_proj", "attention", own.heads, shape.hidden, "rows", own.heads, linear=True, form=shape.form
        ),
    )


def _experts(moe: Moe | None, shape: Shape) -> Tensors:
    if moe is None:
        return ()
    return experts(moe._replace(correction=True, wide_router=True), shape.hidden, shape.form, "moe", "share_expert")
