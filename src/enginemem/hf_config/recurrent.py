"""Readers of hybrids: layers that keep a state of fixed size for a request, beside attention layers."""

from __future__ import annotations

from enginemem.architecture import Recurrent
from enginemem.hf_config.decoder import latent_facts, latent_spec, norms, spec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_LAYERS, Fields
from enginemem.hf_config.parts import Attention, Tensors, attention, experts, latent, mlp, norm
from enginemem.hf_config.shape import Decoded, Layer, moe_layers, outer_tensors, read_moe, read_shape, rotary_width
from enginemem.hf_config.states import (
    NO_CACHE,
    gdn_tensors,
    kda_tensors,
    mamba2,
    mamba2_tensors,
    state_spec,
    state_type,
)


def read_gdn(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Gated delta layers with a full attention layer at intervals; dense or with experts and a gated shared expert."""
    shape = read_shape(fields, outer, family)
    kinds = fields.per_layer("layer_types", shape.layers, {"full_attention": True, "linear_attention": False})
    if kinds is None:
        interval = fields.count("full_attention_interval", high=MOST_LAYERS)
        kinds = [(index + 1) % interval == 0 for index in range(shape.layers)]
    key_heads, key = fields.count("linear_num_key_heads", high=65_536), fields.count("linear_key_head_dim", high=65_536)
    heads, value = (
        fields.count("linear_num_value_heads", high=65_536),
        fields.count("linear_value_head_dim", high=65_536),
    )
    kernel = fields.count("linear_conv_kernel_dim", low=2, high=1_024)
    if heads % key_heads:
        fields.problem("linear_num_value_heads", f"a multiple of linear_num_key_heads ({key_heads})")
    dtype = state_type(fields, "mamba_ssm_dtype")
    state = Recurrent("gdn", heads, value, key, 2 * key_heads * key + heads * value, kernel, dtype=dtype)
    moe = read_moe(fields, family)
    moe = None if moe is None else moe._replace(shared_gate=True)
    sparse = moe_layers(fields, shape.layers) if moe is not None else [False] * shape.layers
    if not all(sparse) and not shape.intermediate:
        fields.problem("intermediate_size", "the width of the layers without experts")
    gate, rotary = fields.flag("attn_output_gate", True), rotary_width(fields, shape.head)
    facts = Attention(
        shape.hidden, shape.heads, shape.kv_heads, shape.head, shape.head,
        bias=fields.flag("attention_bias", False), query_norm="head", gate=gate,
    )  # fmt: skip
    fields.check()
    linear, own = gdn_tensors(state, key_heads, shape.hidden, shape.form), attention(facts, shape.form)
    dense = mlp(shape.hidden, shape.intermediate, shape.form)
    mixed = experts(moe, shape.hidden, shape.form, shared="shared_expert") if moe is not None else ()
    full, recurrent = spec("full", shape.kv_heads, shape.head, shape.head), state_spec(state)
    layers = [
        Layer(
            (full if is_full else recurrent,),
            (own if is_full else linear) + norms(shape, 2) + (mixed if is_moe else dense),
        )
        for is_full, is_moe in zip(kinds, sparse, strict=True)
    ]
    return Decoded(shape, layers, outer_tensors(shape), moe, sum(sparse), rotary, query_norm=True, biases=facts.bias)


_BLOCKS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron_pattern(fields: Fields) -> list[str]:
    """The kind of each layer, from hybrid_override_pattern or layers_block_type."""
    if fields.given("layers_block_type"):
        entries = fields.items("layers_block_type") or ()
        return fields.per_layer("layers_block_type", len(entries), {kind: kind for kind in _BLOCKS.values()}) or []
    text = fields.text("hybrid_override_pattern")
    if not text or len(text) > MOST_LAYERS or set(text) - set(_BLOCKS):
        fields.problem("hybrid_override_pattern", "a text of M (Mamba), * (attention), - (MLP) and E (experts)")
        return []
    if fields.given("num_hidden_layers") and fields.values["num_hidden_layers"] != len(text):
        fields.problem("num_hidden_layers", f"the {len(text)} layers of hybrid_override_pattern")
    return [_BLOCKS[letter] for letter in text]


def read_nemotron(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Nemotron-H and Nemotron 3: each layer is one of Mamba-2, attention, an MLP or experts."""
    pattern = _nemotron_pattern(fields)
    shape = read_shape(
        Fields({**fields.values, "num_hidden_layers": max(len(pattern), 1)}, fields.path, fields.errors), outer, family
    )
    state = mamba2(
        fields.count("mamba_num_heads", high=65_536), fields.count("mamba_head_dim", high=65_536),
        fields.count("n_groups", high=65_536), fields.count("ssm_state_size", high=65_536),
        fields.count("conv_kernel", low=2, high=1_024), state_type(fields, "mamba_ssm_cache_dtype"),
    )  # fmt: skip
    moe = read_moe(fields, family) if "moe" in pattern else None
    if "moe" in pattern and moe is None:
        fields.problem("n_routed_experts", "the number of experts of the layers called E or moe")
    if "mlp" in pattern and not shape.intermediate:
        fields.problem("intermediate_size", "the width of the layers called - or mlp")
    moe = None if moe is None else moe._replace(correction=True, latent=fields.optional("moe_latent_size"))
    bias, mlp_bias = fields.flag("attention_bias", False), fields.flag("mlp_bias", False)
    conv_bias, own_bias = fields.flag("use_conv_bias", True), fields.flag("use_bias", False)
    fields.check()
    facts = Attention(shape.hidden, shape.heads, shape.kv_heads, shape.head, shape.head, bias=bias, output_bias=bias)
    tensors: dict[str, Tensors] = {
        "mamba": mamba2_tensors(state, shape.hidden, shape.form, prefix="mixer", conv_bias=conv_bias, bias=own_bias),
        "attention": attention(facts, shape.form, "mixer"),
        "mlp": mlp(shape.hidden, shape.intermediate, shape.form, gated=False, bias=mlp_bias, prefix="mixer"),
        "moe": () if moe is None else experts(moe, shape.hidden, shape.form, "mixer"),
    }
    caches = {"mamba": state_spec(state), "attention": spec("full", shape.kv_heads, shape.head, shape.head)}
    around = (norm("norm", shape.hidden, shape.form),)
    layers = [Layer((caches.get(kind, NO_CACHE),), tensors[kind] + around) for kind in pattern]
    return Decoded(shape, layers, outer_tensors(shape), moe, pattern.count("moe"), 0, biases=bias, output_bias=bias)


def read_kda(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """Kimi Linear: KDA layers and latent attention layers as linear_attn_config lists them, counted from 1."""
    shape = read_shape(fields, outer, family)
    own = fields.inner("linear_attn_config") or Fields({}, f"{fields.path}.linear_attn_config", fields.errors)
    listed = {index for index in own.items("full_attn_layers") or () if isinstance(index, int)}
    linear = {index for index in own.items("kda_layers") or () if isinstance(index, int)}
    if listed & linear or (listed | linear) != set(range(1, shape.layers + 1)):
        own.problem("full_attn_layers", f"with kda_layers each of the layers 1 to {shape.layers} once")
    heads, head = own.count("num_heads", high=65_536), own.count("head_dim", high=65_536)
    kernel = own.count("short_conv_kernel_size", low=2, high=1_024)
    if own.flag("use_full_rank_gate", False):
        own.problem("use_full_rank_gate", "false: the full-rank gate's matrices are not known here")
    state = Recurrent("kda", heads, head, head, 3 * heads * head, kernel)
    facts, moe = latent_facts(fields, shape), read_moe(fields, family)
    sparse = moe_layers(fields, shape.layers) if moe is not None else [False] * shape.layers
    fields.check()
    delta, rows = kda_tensors(state, shape.hidden, shape.form), latent(facts, shape.form)
    dense = mlp(shape.hidden, shape.intermediate, shape.form)
    mixed = experts(moe, shape.hidden, shape.form) if moe is not None else ()
    layers = []
    for index, is_moe in enumerate(sparse):
        full = index + 1 in listed
        cache = latent_spec(facts, indexed=False) if full else state_spec(state)
        layers.append(Layer((cache,), (rows if full else delta) + norms(shape, 2) + (mixed if is_moe else dense)))
    outside, rank = outer_tensors(shape), facts.kv_rank
    return Decoded(shape, layers, outside, moe, sum(sparse), facts.rope, latent_rank=rank)
