"""The reader of MiniMax M3: grouped attention, in most layers over blocks that an index picks."""

from __future__ import annotations

from enginemem.hf_config.decoder import norms, spec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import Fields
from enginemem.hf_config.parts import Attention, Tensors, attention, experts, mlp, norm
from enginemem.hf_config.shape import (
    Decoded,
    Layer,
    Shape,
    moe_layers,
    outer_tensors,
    read_moe,
    read_shape,
    rotary_width,
)
from enginemem.tensors import Tensor

_SPARSE = {0: False, 1: True}


def read_minimax_m3(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """MiniMax M3: an index key beside K and V in the layers that sparse_attention_config marks; dense layers first.

    Source rules: models/minimax_m3/nvidia/model.py at vLLM 0.32.0.
    """
    shape = read_shape(fields, outer, family)
    own = fields.inner("sparse_attention_config")
    if own is None:
        fields.problem("sparse_attention_config", "an object that marks the layers with an index")
        own = Fields({}, f"{fields.path}.sparse_attention_config", fields.errors)
    marked = own.per_layer("sparse_attention_freq", shape.layers, _SPARSE)
    if marked is None:
        own.problem("sparse_attention_freq", "0 or 1 for each layer")
    silent = own.per_layer("sparse_disable_index_value", shape.layers, _SPARSE)
    if silent is not None and silent != marked:
        own.problem("sparse_disable_index_value", "as sparse_attention_freq: values of the index are not known here")
    if fields.flag("attention_output_gate", False):
        fields.problem("attention_output_gate", "false: the gate's matrix is not known here")
    heads, width = own.count("sparse_num_index_heads", high=65_536), own.count("sparse_index_dim", high=65_536)
    dense_width = fields.count("dense_intermediate_size")
    moe, rotary = read_moe(fields, family), rotary_width(fields, shape.head)
    if moe is None:
        fields.problem("num_local_experts", "the number of experts")
    shared = fields.count("n_shared_experts", 1, low=0, high=65_536)
    shared *= fields.count("shared_intermediate_size", 0 if moe is None else moe.width, low=0)
    sparse = moe_layers(fields, shape.layers)
    fields.check()
    moe = None if moe is None else moe._replace(shared=shared, wide_router=True)
    facts = Attention(shape.hidden, shape.heads, shape.kv_heads, shape.head, shape.head, query_norm="head")
    plain, around = attention(facts, shape.form), norms(shape, 2)
    index = _index(shape, heads, width)
    dense = mlp(shape.hidden, dense_width, shape.form)
    mixed = () if moe is None else experts(moe, shape.hidden, shape.form, "block_sparse_moe")
    cache = spec("full", shape.kv_heads, shape.head, shape.head)
    layers = [
        Layer(
            (cache._replace(index_head=width if is_marked else 0),),
            plain + (index if is_marked else ()) + around + (mixed if is_moe else dense),
        )
        for is_marked, is_moe in zip(marked or [], sparse, strict=True)
    ]
    return Decoded(shape, layers, outer_tensors(shape), moe, sum(sparse), rotary, query_norm=True)


def _index(shape: Shape, heads: int, width: int) -> Tensors:
    """Queries of the index, cut as KV heads are, its one key, and their norms."""
    name, hidden, form = "self_attn", shape.hidden, shape.form
    return (
        Tensor(f"{name}.index_q_proj", "indexer", heads * width, hidden, "heads", heads, linear=True, form=form),
        Tensor(f"{name}.index_k_proj", "indexer", width, hidden, linear=True, form=form),
        norm(f"{name}.index_q_norm", width, form),
        norm(f"{name}.index_k_norm", width, form),
    )
