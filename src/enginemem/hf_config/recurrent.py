"""Readers of hybrids: layers that keep a state of fixed size for a request, beside attention layers."""

from __future__ import annotations

from enginemem.architecture import Recurrent
from enginemem.hf_config.decoder import latent_facts, latent_spec, norms, spec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_LAYERS, Fields
from enginemem.hf_config.parts import Attention, Tensors, attention, experts, latent, mlp, norm, vector
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
_LISTED = {kind: kind for kind in _BLOCKS.values()} | {"linear_attention": "mamba", "full_attention": "attention"}


def _nemotron_pattern(fields: Fields) -> list[str]:
    """The kind of each layer, from hybrid_override_pattern or a list."""
    listed = fields.first("layers_block_type", "layer_types")
    if fields.given(listed):
        entries = fields.items(listed) or ()
        return fields.per_layer(listed, len(entries), _LISTED) or []
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
    shape = read_shape(fields, outer, family, layers=max(len(pattern), 1))
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
    """Kimi Linear and Kimi K3: KDA layers and latent attention layers as linear_attn_config lists them, counted from 1.

    K3 adds experts that work in a latent width, an output gate of latent attention, a gate of full rank in the KDA
    layers, and a norm and a vector before each half of a layer that mix earlier blocks' outputs. Source rules:
    kimi_linear.py and models/kimi_k3/nvidia (model, kda, mla) at vLLM 0.32.0, models/kimi_k3.py at SGLang 0.5.22.
    """
    shape = read_shape(fields, outer, family)
    own = fields.inner("linear_attn_config") or Fields({}, f"{fields.path}.linear_attn_config", fields.errors)
    listed = {index for index in own.items("full_attn_layers") or () if isinstance(index, int)}
    linear = {index for index in own.items("kda_layers") or () if isinstance(index, int)}
    if listed & linear or (listed | linear) != set(range(1, shape.layers + 1)):
        own.problem("full_attn_layers", f"with kda_layers each of the layers 1 to {shape.layers} once")
    heads, head = own.count("num_heads", high=65_536), own.count("head_dim", high=65_536)
    kernel = own.count("short_conv_kernel_size", low=2, high=1_024)
    full_gate = own.flag("use_full_rank_gate", False)
    state = Recurrent("kda", heads, head, head, 3 * heads * head, kernel)
    facts = latent_facts(fields, shape)._replace(gate=fields.flag("mla_use_output_gate", False))
    moe = read_moe(fields, family)
    if moe is not None and fields.given("routed_expert_hidden_size"):
        width, normed = fields.count("routed_expert_hidden_size"), fields.flag("latent_moe_use_norm", False)
        moe = moe._replace(latent=width, latent_norm=normed, wide_latent=True)
    sparse = moe_layers(fields, shape.layers) if moe is not None else [False] * shape.layers
    if not all(sparse) and not shape.intermediate:
        fields.problem("intermediate_size", "the width of the layers without experts")
    mixed_back = fields.optional("attn_res_block_size") is not None
    rotary = 0 if fields.flag("mla_use_nope", False) else facts.rope
    fields.check()
    delta = kda_tensors(state, shape.hidden, shape.form, full_gate=full_gate)
    around, rows = norms(shape, 2) + _residual(shape, mixed_back), latent(facts, shape.form)
    dense = mlp(shape.hidden, shape.intermediate, shape.form)
    mixed = experts(moe, shape.hidden, shape.form, "block_sparse_moe") if moe is not None else ()
    layers = []
    for index, is_moe in enumerate(sparse):
        full = index + 1 in listed
        cache = latent_spec(facts, indexed=False) if full else state_spec(state)
        layers.append(Layer((cache,), (rows if full else delta) + around + (mixed if is_moe else dense)))
    outside = outer_tensors(shape) + _residual(shape, mixed_back)[:2]
    return Decoded(shape, layers, outside, moe, sum(sparse), rotary, latent_rank=facts.kv_rank)


def _residual(shape: Shape, present: bool) -> Tensors:
    """What weighs the outputs of earlier blocks before attention and before the MLP."""
    if not present:
        return ()
    names = ("self_attention_res", "mlp_res")
    return tuple(
        [
            tensor
            for name in names
            for tensor in (
                norm(f"{name}_norm", shape.hidden, shape.form),
                vector(f"{name}_proj", shape.hidden, shape.form),
            )
        ]
    )
