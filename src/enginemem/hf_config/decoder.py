"""Readers of attention models: dense and mixture-of-experts decoders, latent attention, and blocks of varying heads."""

from __future__ import annotations

from math import ceil

from enginemem.architecture import LayerKind, LayerSpec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import Fields
from enginemem.hf_config.parts import Attention, Latent, Moe, Tensors, attention, experts, latent, mlp, norm, vector
from enginemem.hf_config.shape import (
    Decoded,
    Layer,
    Shape,
    moe_layers,
    outer_tensors,
    read_moe,
    read_shape,
    rotary_width,
    window_kinds,
)


def said(fields: Fields, family: Family, which: str) -> bool:
    """Whether the family has biases (`biases`) or an output bias (`output_bias`)."""
    stands = {"biases": family.biases, "output_bias": family.output_bias}[which]
    return stands == "yes" or (stands == "field" and fields.flag("attention_bias", False))


def norms(shape: Shape, count: int, *, bias: bool = False) -> Tensors:
    """The norms of the hidden size in one layer."""
    names = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    found = [norm(name, shape.hidden, shape.form) for name in names[:count]]
    return tuple(found + [vector(f"{name}.bias", shape.hidden, shape.form) for name in names[:count] if bias])


def spec(kind: LayerKind, kv_heads: int, head: int, v_head: int, *, window: int | None = None) -> LayerSpec:
    """The cache of one attention layer."""
    return LayerSpec(kind, 1, kv_heads, head, v_head, window=window if kind == "sliding" else None)


def _query_norm(fields: Fields, family: Family) -> str:
    if family.query_norm in ("glm", "cohere"):
        # Command R's norms have a weight for each head, GLM's one for all of them.
        kind = "head" if family.query_norm == "glm" else "full"
        return kind if fields.flag("use_qk_norm", False) else ""
    if family.query_norm == "full" and fields.values.get("use_qk_norm") is False:
        return ""
    return family.query_norm


def read_decoder(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Attention and an MLP or experts in every layer."""
    shape = read_shape(fields, outer, family)
    kinds, window = window_kinds(fields, family, shape.layers)
    moe = read_moe(fields, family)
    sparse = moe_layers(fields, shape.layers) if moe is not None else [False] * shape.layers
    if not all(sparse) and not shape.intermediate:
        fields.problem("intermediate_size", "the width of the layers without experts")
    facts = Attention(
        shape.hidden,
        shape.heads,
        shape.kv_heads,
        shape.head,
        fields.count("v_head_dim", shape.head, high=65_536),
        bias=said(fields, family, "biases"),
        output_bias=said(fields, family, "output_bias"),
        query_norm=_query_norm(fields, family),
    )
    mlp_bias = fields.flag("mlp_bias", False)
    head_bias = fields.flag("lm_head_bias", False)
    rotary = rotary_width(fields, shape.head)
    fields.check()
    own = attention(facts, shape.form)
    around = norms(shape, family.norms, bias=family.norm_bias)
    dense = mlp(shape.hidden, shape.intermediate, shape.form, gated=family.gated, bias=mlp_bias)
    mixed = experts(moe, shape.hidden, shape.form) if moe is not None else ()
    layers = [
        Layer(
            (spec(kind, shape.kv_heads, shape.head, facts.v_head, window=window),),
            own + around + (mixed if is_moe else dense),
        )
        for kind, is_moe in zip(kinds, sparse, strict=True)
    ]
    return Decoded(
        shape,
        layers,
        outer_tensors(shape, bias=head_bias, norm_bias=family.norm_bias),
        moe,
        sum(sparse),
        rotary,
        query_norm=bool(facts.query_norm),
        biases=facts.bias,
        output_bias=facts.output_bias,
    )


def latent_facts(fields: Fields, shape: Shape) -> Latent:
    """Ranks and widths of latent attention and of its indexer."""
    return Latent(
        shape.hidden,
        shape.heads,
        fields.optional("q_lora_rank", high=65_536),
        fields.count("kv_lora_rank", high=65_536),
        fields.count("qk_nope_head_dim", high=65_536),
        fields.count("qk_rope_head_dim", high=65_536),
        fields.count("v_head_dim", high=65_536),
        fields.count("index_n_heads", 0, low=0, high=65_536),
        fields.count("index_head_dim", 0, low=0, high=65_536),
    )


def latent_spec(facts: Latent, *, indexed: bool) -> LayerSpec:
    """The cache of one layer: a latent row, and the indexer's key where the layer has one."""
    return LayerSpec("mla", 1, 1, facts.kv_rank + facts.rope, 0, index_head=facts.index_head if indexed else 0)


def read_latent(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """DeepSeek V2 and V3, Kimi K2, GLM-5: one latent row a token, dense layers first and experts then."""
    shape = read_shape(fields, outer, family)
    facts = latent_facts(fields, shape)
    if facts.index_head and facts.query_rank is None:
        fields.problem("q_lora_rank", "a rank: the indexer starts from the compressed query")
    moe = read_moe(fields, family)
    sparse = moe_layers(fields, shape.layers) if moe is not None else [False] * shape.layers
    indexed = fields.per_layer("indexer_types", shape.layers, {"full": True, "shared": False})
    indexed = _indexed(fields, shape, own=bool(facts.index_head)) if indexed is None else indexed
    if not all(sparse) and not shape.intermediate:
        fields.problem("intermediate_size", "the width of the layers without experts")
    fields.check()
    around, dense = norms(shape, 2), mlp(shape.hidden, shape.intermediate, shape.form)
    mixed = experts(moe, shape.hidden, shape.form) if moe is not None else ()
    plain = facts._replace(index_head=0)
    own = {True: latent(facts, shape.form), False: latent(plain, shape.form)}
    layers = [
        Layer((latent_spec(facts, indexed=index),), own[index] + around + (mixed if is_moe else dense))
        for index, is_moe in zip(indexed, sparse, strict=True)
    ]
    outside = outer_tensors(shape)
    return Decoded(shape, layers, outside, moe, sum(sparse), facts.rope, latent_rank=facts.kv_rank)


def _indexed(fields: Fields, shape: Shape, *, own: bool) -> list[bool]:
    """Which layers have an indexer of their own: all, or after the first `index_skip_topk_offset` ones every
    `index_topk_freq`-th."""
    every = fields.count("index_topk_freq", 1, high=4_096)
    offset = fields.count("index_skip_topk_offset", 0, low=0, high=4_096)
    return [own and max(index - offset + 1, 0) % every == 0 for index in range(shape.layers)]


def read_gpt_oss(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """gpt-oss: biases everywhere, attention sinks, experts whose biases are stored beside them."""
    shape = read_shape(fields, outer, family)
    kinds, window = window_kinds(fields, family, shape.layers)
    moe = read_moe(fields, family)
    if moe is None:
        fields.problem("num_local_experts", "the number of experts")
    fields.check()
    moe = (moe or Moe(1, 1, 1))._replace(bias=True, router_bias=True)
    facts = Attention(
        shape.hidden, shape.heads, shape.kv_heads, shape.head, shape.head, bias=True, output_bias=True, sinks=True
    )
    tensors = attention(facts, shape.form) + norms(shape, 2) + experts(moe, shape.hidden, shape.form)
    layers = [Layer((spec(kind, shape.kv_heads, shape.head, shape.head, window=window),), tensors) for kind in kinds]
    return Decoded(
        shape, layers, outer_tensors(shape), moe, shape.layers, shape.head, sinks=True, biases=True, output_bias=True
    )


def read_llama4(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Llama 4: chunked layers with a full one at intervals; experts with a shared one at intervals."""
    shape = read_shape(fields, outer, family)
    chunk = fields.optional("attention_chunk_size", high=1_000_000_000)
    rope = fields.items("no_rope_layers") or None
    interval = fields.count("no_rope_layer_interval", 4, high=4_096)
    turns = fields.per_layer("no_rope_layers", shape.layers, {1: True, 0: False}) if rope else None
    turns = [(index + 1) % interval != 0 for index in range(shape.layers)] if turns is None else turns
    step = fields.count("interleave_moe_layer_step", 1, high=4_096)
    moe = read_moe(fields, family)
    dense_width = fields.count("intermediate_size_mlp", shape.intermediate, low=0)
    fields.check()
    moe = None if moe is None else moe._replace(shared=moe.width)
    sparse = [moe is not None and (index + 1) % step == 0 for index in range(shape.layers)]
    facts = Attention(
        shape.hidden, shape.heads, shape.kv_heads, shape.head, shape.head,
        bias=said(fields, family, "biases"), output_bias=said(fields, family, "output_bias"),
    )  # fmt: skip
    own, dense = (
        attention(facts, shape.form) + norms(shape, 2),
        mlp(shape.hidden, dense_width, shape.form, prefix="feed_forward"),
    )
    mixed = experts(moe, shape.hidden, shape.form, "feed_forward", "shared_expert") if moe is not None else ()
    layers = []
    for turn, is_moe in zip(turns, sparse, strict=True):
        cache = spec("full", shape.kv_heads, shape.head, shape.head)
        if turn and chunk:
            cache = cache._replace(kind="chunked", chunk=chunk)
        layers.append(Layer((cache,), own + (mixed if is_moe else dense)))
    return Decoded(
        shape,
        layers,
        outer_tensors(shape),
        moe,
        sum(sparse),
        shape.head,
        biases=facts.bias,
        output_bias=facts.output_bias,
    )


def read_mimo_v2(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """MiMo V2: window layers with heads and sinks of their own, narrower values than keys."""
    shape = read_shape(fields, outer, family)
    local = fields.per_layer("hybrid_layer_pattern", shape.layers, {1: True, 0: False})
    if local is None:
        fields.problem("hybrid_layer_pattern", "0 (full attention) or 1 (window) for each layer")
    window = fields.count(fields.first("sliding_window", "sliding_window_size"), high=1_000_000_000)
    moe = read_moe(fields, family)
    sparse = moe_layers(fields, shape.layers) if moe is not None else [False] * shape.layers
    bias = said(fields, family, "biases")
    facts = {
        False: Attention(
            shape.hidden, shape.heads, shape.kv_heads, shape.head, fields.count("v_head_dim", shape.head, high=65_536),
            bias=bias, sinks=fields.flag("add_full_attention_sink_bias", False),
        ),
        True: Attention(
            shape.hidden, fields.count("swa_num_attention_heads", high=65_536),
            fields.count("swa_num_key_value_heads", high=65_536), fields.count("swa_head_dim", high=65_536),
            fields.count("swa_v_head_dim", high=65_536), bias=bias,
            sinks=fields.flag("add_swa_attention_sink_bias", False),
        ),
    }  # fmt: skip
    rotary = rotary_width(fields, shape.head)
    fields.check()
    around, dense = norms(shape, 2), mlp(shape.hidden, shape.intermediate, shape.form)
    mixed = experts(moe, shape.hidden, shape.form) if moe is not None else ()
    layers = []
    for is_local, is_moe in zip(local or [], sparse, strict=True):
        own = facts[is_local]
        kind: LayerKind = "sliding" if is_local else "full"
        cache = spec(kind, own.kv_heads, own.head, own.v_head, window=window)
        layers.append(Layer((cache,), attention(own, shape.form) + around + (mixed if is_moe else dense)))
    sinks = any(own.sinks for own in facts.values())
    return Decoded(shape, layers, outer_tensors(shape), moe, sum(sparse), rotary, sinks=sinks, biases=bias)


def read_nas(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Llama-Nemotron: each block states its heads and its MLP, or leaves them out."""
    shape = read_shape(fields, outer, family, attention=False)
    blocks = fields.items("block_configs") or ()
    if len(blocks) != shape.layers or not blocks:
        fields.problem("block_configs", f"an entry for each of the {shape.layers} layers")
    parsed = [_nas_block(fields, index, shape) for index in range(len(blocks))]
    mlp_bias = fields.flag("mlp_bias", False)
    fields.check()
    layers = []
    bias, output_bias = said(fields, family, "biases"), said(fields, family, "output_bias")
    for kv_heads, width in parsed:
        tensors: Tensors = ()
        cache = LayerSpec("none", 1, 0, 0, 0)
        if kv_heads:
            facts = Attention(
                shape.hidden, shape.heads, kv_heads, shape.head, shape.head, bias=bias, output_bias=output_bias
            )
            tensors += attention(facts, shape.form) + norms(shape, 1)
            cache = spec("full", kv_heads, shape.head, shape.head)
        if width:
            tensors += mlp(shape.hidden, width, shape.form, bias=mlp_bias) + norms(shape, 2)[1:]
        layers.append(Layer((cache,), tensors))
    widest = max([width for _, width in parsed], default=0)
    kv_heads = next((heads for heads, _ in parsed if heads), shape.heads)
    shape = shape._replace(intermediate=widest, kv_heads=kv_heads)
    return Decoded(shape, layers, outer_tensors(shape), rotary=shape.head, biases=bias, output_bias=output_bias)


def _nas_block(fields: Fields, index: int, shape: Shape) -> tuple[int, int]:
    """KV heads and MLP width of one block; 0 for a part that it leaves out."""
    entry = (fields.items("block_configs") or ())[index]
    block = Fields(entry if isinstance(entry, dict) else {}, f"{fields.path}.block_configs[{index}]", fields.errors)
    own, forward = block.inner("attention"), block.inner("ffn")
    if own is None or forward is None:
        block.problem("attention", "an object; ffn likewise")
        return 0, 0
    for part in (own, forward):
        if part.flag("replace_with_linear", False):
            part.problem("replace_with_linear", "false: a linear layer in place of a part is not known here")
    kv_heads = width = 0
    if not own.flag("no_op", False):
        group = own.count("n_heads_in_group", high=65_536)
        if shape.heads % group:
            own.problem("n_heads_in_group", f"a divisor of num_attention_heads ({shape.heads})")
        kv_heads = max(shape.heads // group, 1)
        if own.given("window_length"):
            own.problem("window_length", "null: windows of single blocks are not known here")
    if not forward.flag("no_op", False):
        exact = 2 * forward.number("ffn_mult", high=1_000) * shape.hidden / 3
        # The class rounds up to a multiple of 256 (_ffn_mult_to_intermediate_size).
        width = ceil(int(exact) / 256) * 256
    return kv_heads, width
