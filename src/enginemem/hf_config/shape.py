"""What every reader starts from: sizes, layer kinds with their windows, and which layers hold experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from enginemem.architecture import LayerKind, LayerSpec
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_LAYERS, MOST_ROWS, MOST_TOKENS, Fields
from enginemem.hf_config.parts import Moe, Tensors
from enginemem.tensors import BF16, FP16, Format, Tensor

DTYPES = {"bfloat16": BF16, "float16": FP16, "float32": BF16, "half": FP16}
"""Stored types by name; engines narrow 32-bit checkpoints to 16 bits at load."""

LEAST_HEAD = 8
"""Elements of the smallest head that any kernel takes."""


class Shape(NamedTuple):
    """Sizes that all families state, in elements; `form` is the type of what is not quantised."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    intermediate: int
    vocabulary: int
    positions: int
    tied: bool
    form: Format


class Layer(NamedTuple):
    """One layer in its order: what it caches (several entries where attention and state stand side by side) and its
    tensors."""

    caches: tuple[LayerSpec, ...]
    tensors: Tensors


class Decoded(NamedTuple):
    """What a reader makes of a configuration: the layers, tensors outside of them, and how the whole is shown."""

    shape: Shape
    layers: list[Layer]
    outer: Tensors = ()
    moe: Moe | None = None
    moe_layers: int = 0
    rotary: int = 0
    latent_rank: int | None = None
    sinks: bool = False
    query_norm: bool = False
    biases: bool = False
    output_bias: bool = False
    notes: tuple[str, ...] = ()


def stored_type(*places: Fields) -> Format:
    """The type of the checkpoint's plain tensors: dtype or torch_dtype; 16-bit brain floats where none is stated."""
    for fields in places:
        name = fields.first("dtype", "torch_dtype")
        if fields.given(name):
            text = fields.text(name).removeprefix("torch.")
            if text not in DTYPES:
                fields.problem(name, ", ".join(DTYPES))
            return DTYPES.get(text, BF16)
    return BF16


def read_shape(
    fields: Fields, outer: Fields, family: Family, *, attention: bool = True, layers: int | None = None
) -> Shape:
    """The sizes; `attention` is False for families whose heads are stated block by block, `layers` the number of
    layers where a pattern says it."""
    before = len(fields.errors)
    hidden = fields.count("hidden_size")
    heads = fields.count("num_attention_heads", high=65_536)
    groups = fields.first("num_key_value_heads", "num_attention_groups")
    kv_heads = fields.count(groups, heads, high=65_536) if attention else heads
    name = fields.first("head_dim", "attention_head_dim")
    head = fields.count(name, max(hidden // max(heads, 1), 1), low=LEAST_HEAD, high=65_536)
    if head < LEAST_HEAD and len(fields.errors) == before:
        fields.problem("num_attention_heads", f"heads of at least {LEAST_HEAD} elements of a hidden_size of {hidden}")
    if heads % kv_heads:
        fields.problem(groups, f"a divisor of num_attention_heads ({heads})")
    name = "num_hidden_layers"
    if layers is None:
        layers = fields.count(name, high=MOST_LAYERS) if fields.given(name) or attention else 0
    tied = outer.values.get("tie_word_embeddings", fields.values.get("tie_word_embeddings", family.tied))
    if tied is not None and not isinstance(tied, bool):
        fields.problem("tie_word_embeddings", "true or false", tied)
    return Shape(
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head=head,
        intermediate=fields.count("intermediate_size", 0, low=0) if not isinstance(
            fields.values.get("intermediate_size"), (list, tuple)) else 0,
        vocabulary=fields.count("vocab_size", high=MOST_ROWS),
        positions=fields.count(
            fields.first("max_position_embeddings", "model_max_length", "max_seq_len"), high=MOST_TOKENS
        ),
        tied=family.tied if tied is None else tied is True,
        form=stored_type(fields, outer),
    )  # fmt: skip


LAYER_TYPES: Mapping[str, LayerKind] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "deepseek_sparse_attention": "full",
}


def window_kinds(fields: Fields, family: Family, layers: int) -> tuple[list[LayerKind], int | None]:
    """full or sliding for each layer, and the window in tokens."""
    window = fields.optional("sliding_window", high=MOST_TOKENS) if fields.values.get("sliding_window") != 0 else None
    if fields.values.get("use_sliding_window") is False or family.windows == "ignored":
        window = None
    kinds = fields.per_layer("layer_types", layers, LAYER_TYPES)
    if kinds is not None:
        if "sliding" in kinds and window is None:
            fields.problem("sliding_window", "the window of the layers that layer_types calls sliding_attention")
        return kinds, window
    if window is None:
        return ["full"] * layers, None
    pattern = family.windows
    if pattern.isdigit():
        period = fields.count(
            fields.first("sliding_window_pattern", "_sliding_window_pattern"), int(pattern), high=4_096
        )
        return ["sliding" if (index + 1) % period else "full" for index in range(layers)], window
    if pattern == "second":
        return ["full" if index % 2 else "sliding" for index in range(layers)], window
    if pattern == "all":
        return ["sliding"] * layers, window
    if fields.flag("use_sliding_window", False):
        first = fields.count("max_window_layers", layers, low=0, high=1_000_000)
        return ["full" if index < first else "sliding" for index in range(layers)], window
    return ["full"] * layers, None


def read_moe(fields: Fields, family: Family) -> Moe | None:
    """The experts of a layer, or None for a dense model; widths in elements."""
    total_name = fields.first("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
    if not family.moe or not fields.given(total_name) or fields.values.get(total_name) == 0:
        return None
    active_name = fields.first(
        "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts", "moe_top_k"
    )
    total = fields.count(total_name, high=65_536)
    active = fields.count(active_name, high=65_536)
    if active > total:
        fields.problem(active_name, f"at most {total_name} ({total})")
    width = fields.count(fields.first("moe_intermediate_size", "intermediate_size"))
    correction = family.correction == "yes" or (
        family.correction == "field"
        and (fields.values.get("topk_method") == "noaux_tc" or fields.flag("use_routing_bias", False))
    )
    shared = _shared_width(fields, width)
    return Moe(total, active, width, shared, correction, family.shared_gate, gated=family.gated)


def _shared_width(fields: Fields, width: int) -> int:
    """The width of all shared experts together."""
    for name in ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim"):
        if fields.given(name):
            return fields.count(name, low=0)
    name = fields.first("n_shared_experts", "num_shared_experts")
    count = fields.count(name, 0, low=0, high=65_536)
    each = fields.count("moe_shared_expert_intermediate_size", width)
    return count * each


def moe_layers(fields: Fields, layers: int, *, every: bool = True) -> list[bool]:
    """Whether each layer holds experts; `every` when all do where the configuration says nothing else."""
    listed = fields.per_layer("mlp_layer_types", layers, {"sparse": True, "dense": False})
    if listed is not None:
        return listed
    if isinstance(fields.values.get("moe_layer_freq"), (list, tuple)):
        return fields.per_layer("moe_layer_freq", layers, {1: True, 0: False}) or []
    dense = fields.count("first_k_dense_replace", 0, low=0, high=MOST_LAYERS)
    step = fields.count(fields.first("moe_layer_freq", "decoder_sparse_step"), 1, low=0, high=MOST_LAYERS)
    only = {index for index in fields.items("mlp_only_layers") or () if isinstance(index, int)}
    shift = 1 if fields.given("decoder_sparse_step") else 0
    return [
        every and index >= dense and step > 0 and (index + shift) % step == 0 and index not in only
        for index in range(layers)
    ]


def rotary_width(fields: Fields, head: int) -> int:
    """Elements of a head that turn with the position."""
    nested = fields.inner("rope_parameters")
    places = [fields] + ([nested] if nested is not None else [])
    if fields.given("rotary_dim"):
        return fields.count("rotary_dim", high=65_536)
    for place in places:
        if place.given("partial_rotary_factor"):
            share = place.number("partial_rotary_factor", high=1)
            return int(share * head)
    return head


def outer_tensors(shape: Shape, *, bias: bool = False, norm_bias: bool = False) -> Tensors:
    """Embedding, head and final norm; a tied head is the embedding itself."""
    rows, hidden, form = shape.vocabulary, shape.hidden, shape.form
    tensors = [Tensor("embed_tokens", "embedding", rows, hidden, "vocabulary", form=form)]
    tensors.append(Tensor("norm", "norm", hidden, form=form))
    if norm_bias:
        tensors.append(Tensor("norm.bias", "small", hidden, form=form))
    if not shape.tied:
        tensors.append(Tensor("lm_head", "head", rows, hidden, "vocabulary", form=form))
    if bias:
        tensors.append(Tensor("lm_head.bias", "small", rows, split="vocabulary", form=form))
    return tuple(tensors)
