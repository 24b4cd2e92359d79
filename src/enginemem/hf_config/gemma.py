"""The reader of Gemma 4: window and full layers with heads of their own, experts beside the MLP, keys as values."""

from __future__ import annotations

from enginemem.hf_config.decoder import norms, said, spec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_ROWS, Fields
from enginemem.hf_config.parts import Attention, Moe, Tensors, attention, mlp, norm, vector
from enginemem.hf_config.shape import Decoded, Layer, Shape, outer_tensors, read_shape, window_kinds
from enginemem.tensors import Tensor


def read_gemma4(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Gemma 4, dense or with experts; the last layers may share the cache of earlier ones."""
    shape = read_shape(fields, outer, family)
    kinds, window = window_kinds(fields, family, shape.layers)
    bias = said(fields, family, "biases")
    shared = fields.count("num_kv_shared_layers", 0, low=0, high=shape.layers)
    keys_only = fields.flag("attention_k_eq_v", False)
    full_head = fields.count("global_head_dim", shape.head, high=65_536)
    full_kv = fields.count("num_global_key_value_heads", shape.kv_heads, high=65_536) if keys_only else shape.kv_heads
    local = Attention(
        shape.hidden,
        shape.heads,
        shape.kv_heads,
        shape.head,
        shape.head,
        bias=bias,
        output_bias=bias,
        query_norm="head",
    )
    full = local._replace(kv_heads=full_kv, head=full_head, v_head=full_head, shared_values=keys_only)
    moe = _moe(fields) if fields.flag("enable_moe_block", False) else None
    wide, extra = fields.flag("use_double_wide_mlp", False), _PerLayer.read(fields)
    fields.check()
    layers = []
    first_shared = shape.layers - shared
    for index, kind in enumerate(kinds):
        facts = local if kind == "sliding" else full
        borrows = index >= first_shared > 0
        width = shape.intermediate * (2 if wide and borrows else 1)
        tensors = attention(facts, shape.form) + norms(shape, 4) + mlp(shape.hidden, width, shape.form)
        tensors += (vector("layer_scalar", 1, shape.form), *_beside(moe, shape), *extra.of_layer(shape))
        cache = spec(kind, facts.kv_heads, facts.head, facts.v_head, window=window)
        if borrows:
            cache = cache._replace(kind="none", window=None)
        layers.append(Layer((cache,), tensors))
    outside = outer_tensors(shape) + extra.outside(shape)
    return Decoded(
        shape,
        layers,
        outside,
        moe,
        shape.layers if moe else 0,
        shape.head,
        query_norm=True,
        biases=bias,
        output_bias=bias,
    )


def _moe(fields: Fields) -> Moe:
    total = fields.count("num_experts", high=65_536)
    active = fields.count("top_k_experts", high=65_536)
    if active > total:
        fields.problem("top_k_experts", f"at most num_experts ({total})")
    return Moe(total, active, fields.count(fields.first("moe_intermediate_size", "expert_intermediate_size")))


def _beside(moe: Moe | None, shape: Shape) -> Tensors:
    """Experts that run beside the MLP of the same layer, with the router's scales and three norms."""
    if moe is None:
        return ()
    form, hidden = shape.form, shape.hidden
    names = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    tensors = [norm(name, hidden, form) for name in names]
    tensors += [
        Tensor("router.proj", "router", moe.total, hidden, form=form),
        vector("router.scale", hidden, form),
        vector("router.per_expert_scale", moe.total, form),
    ]
    for tensor in mlp(hidden, moe.width, form, prefix="experts.0"):
        tensors.append(tensor._replace(kind="experts", copies=moe.total))
    return tuple(tensors)


class _PerLayer:
    """Embeddings that every layer reads on its own; `width` 0: none."""

    def __init__(self, width: int, rows: int) -> None:
        self.width, self.rows = width, rows

    @classmethod
    def read(cls, fields: Fields) -> _PerLayer:
        """The width, and the vocabulary of these embeddings."""
        width = fields.count("hidden_size_per_layer_input", 0, low=0)
        return cls(width, fields.count("vocab_size_per_layer_input", high=MOST_ROWS) if width else 0)

    def of_layer(self, shape: Shape) -> Tensors:
        """Gate, projection and norm of one layer."""
        if not self.width:
            return ()
        return (
            Tensor("per_layer_input_gate", "mlp", self.width, shape.hidden, linear=True, form=shape.form),
            Tensor("per_layer_projection", "mlp", shape.hidden, self.width, linear=True, form=shape.form),
            norm("post_per_layer_input_norm", shape.hidden, shape.form),
        )

    def outside(self, shape: Shape) -> Tensors:
        """The embedding of all layers and the projection of the usual one."""
        if not self.width:
            return ()
        wide = self.width * shape.layers
        return (
            Tensor("embed_tokens_per_layer", "embedding", self.rows, wide, "vocabulary", form=shape.form),
            Tensor("per_layer_model_projection", "mlp", wide, shape.hidden, "rows", form=shape.form),
            norm("per_layer_projection_norm", self.width, shape.form),
        )
