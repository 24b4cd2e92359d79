"""The tensors of vision encoders with their projectors, cut over GPUs as classes with tensor parallelism cut them.

Source rules: modeling_qwen3_vl.py, modeling_qwen3_5.py, modeling_qwen2_5_vl.py, modeling_llama4.py, modeling_gemma4.py,
modeling_siglip.py, modeling_gemma3.py, modeling_pixtral.py, modeling_mistral3.py and modeling_kimi_k25.py of Transformers
5.24.0; for Kimi K3 kimi_k25_vit.py of vLLM 0.32.0. Where an engine keeps a part whole is its own rule (its `vision` room).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from enginemem.hf_config.fields import Fields
from enginemem.hf_config.parts import Tensors
from enginemem.tensors import Split, Tensor, TensorKind

COLOURS = 3


class Tower(NamedTuple):
    """`layers` equal layers of `heads` heads with the tensors `layer`, and the tensors `outer` beside them."""

    layers: int
    heads: int
    layer: Tensors
    outer: Tensors


def sizes(vision: Fields, *names: str) -> list[int] | None:
    """Sizes that are all in the file, or None."""
    found = [vision.optional(name) for name in names]
    return [size for size in found if size is not None] if None not in found else None


def _up(name: str, rows: int, columns: int, *, heads: int = 0, bias: bool = False) -> Tensors:
    """A matrix cut by its output features (by heads where it has them), and its bias cut alike."""
    split: Split = "heads" if heads else "rows"
    kind: TensorKind = "attention" if heads else "mlp"
    matrix = Tensor(name, kind, rows, columns, split, heads, linear=True)
    return (matrix, Tensor(f"{name}.bias", "small", rows, split=split, heads=heads)) if bias else (matrix,)


def _down(name: str, rows: int, columns: int, *, bias: bool = False) -> Tensors:
    """A matrix cut by its input features; its bias is on every GPU."""
    matrix = Tensor(name, "mlp", rows, columns, "columns", linear=True)
    return (matrix, Tensor(f"{name}.bias", "small", rows)) if bias else (matrix,)


def _whole(name: str, rows: int, columns: int = 1, *, bias: bool = False, linear: bool = False) -> Tensors:
    """A tensor that every GPU holds."""
    matrix = Tensor(name, "mlp" if linear else "small", rows, columns, linear=linear)
    return (matrix, Tensor(f"{name}.bias", "small", rows)) if bias else (matrix,)


def _norms(width: int, *names: str, bias: bool = True) -> Tensors:
    found = [Tensor(name, "norm", width) for name in names]
    return (*found, *[Tensor(f"{name}.bias", "norm", width) for name in names if bias])


def _attention(
    at: str, width: int, heads: int, *, inner: int | None = None, bias: bool = True, out: str = ""
) -> Tensors:
    """The projections to queries, keys and values, and the output one; `inner` elements in all heads together. With a
    name `out` the first three stand apart in the checkpoint, else they are one matrix."""
    across = width if inner is None else inner
    down = _down(f"{at}.{out or 'proj'}", width, across, bias=bias)
    if not out:
        return (*_up(f"{at}.qkv", 3 * across, width, heads=heads, bias=bias), *down)
    apart = [_up(f"{at}.{name}_proj", across, width, heads=heads, bias=bias) for name in "qkv"]
    return (*[tensor for tensors in apart for tensor in tensors], *down)


def _mlp(at: str, width: int, inner: int, *, bias: bool = True) -> Tensors:
    """Two matrices, whose names are `at` with a number."""
    return (*_up(f"{at}1", inner, width, bias=bias), *_down(f"{at}2", width, inner, bias=bias))


def _gated(at: str, width: int, inner: int, *, bias: bool = False) -> Tensors:
    up = (*_up(f"{at}.gate_proj", inner, width, bias=bias), *_up(f"{at}.up_proj", inner, width, bias=bias))
    return (*up, *_down(f"{at}.down_proj", width, inner, bias=bias))


def qwen3(vision: Fields, _: int, outer: Fields, joints: int = 3) -> Tower | None:
    """Qwen3-VL: LayerNorms, biases everywhere, learned positions, a merger, and one more for each deepstack layer."""
    del outer
    names = ("depth", "hidden_size", "intermediate_size", "out_hidden_size", "patch_size")
    found = sizes(vision, *names, "temporal_patch_size", "spatial_merge_size")
    listed = vision.items("deepstack_visual_indexes")
    if found is None:
        return None
    layers, width, inner, out, patch, frames, merge = found
    colours, rows = vision.count("in_channels", COLOURS), vision.count("num_position_embeddings", 2_304)
    heads, wide = vision.count("num_heads", 16, high=65_536), width * merge * merge
    beside = [*_whole("visual.patch_embed.proj", width, colours * frames * patch * patch, bias=True)]
    beside += [*_whole("visual.pos_embed", rows, width), *_norms(width, "visual.merger.norm")]
    mergers = ["visual.merger"]
    for index in range(len(listed) if listed is not None else joints):
        mergers.append(f"visual.deepstack_merger_list.{index}")
        beside += _norms(wide, f"{mergers[-1]}.norm")
    for at in mergers:
        beside += [*_up(f"{at}.linear_fc1", wide, wide, bias=True), *_down(f"{at}.linear_fc2", out, wide, bias=True)]
    at = "visual.blocks.0"
    layer = (*_norms(width, f"{at}.norm1", f"{at}.norm2"), *_attention(f"{at}.attn", width, heads))
    return Tower(layers, heads, (*layer, *_mlp(f"{at}.mlp.linear_fc", width, inner)), tuple(beside))


def qwen35(vision: Fields, hidden: int, outer: Fields) -> Tower | None:
    """Qwen3.5: the encoder of Qwen3-VL without deepstack layers."""
    return qwen3(vision, hidden, outer, joints=0)


def qwen25(vision: Fields, hidden: int, outer: Fields) -> Tower | None:
    """Qwen2.5-VL: RMSNorms, gated MLPs with biases, no learned positions."""
    del outer
    names = ("depth", "hidden_size", "intermediate_size", "num_heads", "patch_size")
    found = sizes(vision, *names)
    if found is None:
        return None
    layers, width, inner, heads, patch = found
    frames, merge = vision.count("temporal_patch_size", 2), vision.count("spatial_merge_size", 2)
    out, wide = vision.count("out_hidden_size", hidden), width * merge * merge
    colours = vision.count(vision.first("in_channels", "in_chans"), COLOURS)
    at = "visual.blocks.0"
    layer = (*_norms(width, f"{at}.norm1", f"{at}.norm2", bias=False), *_attention(f"{at}.attn", width, heads))
    beside = (
        *_whole("visual.patch_embed.proj", width, colours * frames * patch * patch),
        *_norms(width, "visual.merger.ln_q", bias=False),
        *_up("visual.merger.mlp.0", wide, wide, bias=True),
        *_down("visual.merger.mlp.2", out, wide, bias=True),
    )
    return Tower(layers, heads, (*layer, *_gated(f"{at}.mlp", width, inner, bias=True)), beside)


def llama4(vision: Fields, hidden: int, outer: Fields) -> Tower | None:
    """Llama 4: a class embedding, learned positions, a pixel-shuffle adapter and a projector without biases."""
    del outer
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "image_size", "patch_size", "projector_input_dim")
    found = sizes(vision, *names, "projector_output_dim", "vision_output_dim")
    if found is None:
        return None
    layers, width, inner, image, patch, into, out, seen = found
    heads, colours = vision.count("num_attention_heads", 16, high=65_536), vision.count("num_channels", COLOURS)
    biased = vision.flag("multi_modal_projector_bias", False)
    at = "vision_model.model.layers.0"
    norms = _norms(width, f"{at}.input_layernorm", f"{at}.post_attention_layernorm")
    beside = (
        *_whole("vision_model.class_embedding", width),
        *_whole("vision_model.positional_embedding_vlm", (image // patch) ** 2 + 1, width),
        *_up("vision_model.patch_embedding.linear", width, colours * patch * patch),
        *_norms(width, "vision_model.layernorm_pre", "vision_model.layernorm_post"),
        *_up("vision_model.vision_adapter.mlp.fc1", into, inner, bias=biased),
        *_down("vision_model.vision_adapter.mlp.fc2", out, into, bias=biased),
        *_up("multi_modal_projector.linear_1", hidden, seen),
    )
    layer = (*norms, *_attention(f"{at}.self_attn", width, heads, out="o_proj"), *_mlp(f"{at}.mlp.fc", width, inner))
    return Tower(layers, heads, layer, beside)


def gemma4(vision: Fields, hidden: int, outer: Fields) -> Tower | None:
    """Gemma 4: four RMSNorms a layer, head norms, gated MLPs, positions by row and by column; no biases."""
    if outer.given("audio_config"):
        return None
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    found = sizes(vision, *names, "head_dim", "patch_size", "position_embedding_size")
    if found is None:
        return None
    layers, width, inner, heads, groups, head, patch, rows = found
    at = "vision_tower.encoder.layers.0"
    layer = (
        *_norms(width, *[f"{at}.{name}_layernorm" for name in _SANDWICH], bias=False),
        *_norms(head, f"{at}.self_attn.q_norm", f"{at}.self_attn.k_norm", bias=False),
        *_up(f"{at}.self_attn.q_proj", heads * head, width, heads=heads),
        *_up(f"{at}.self_attn.k_proj", groups * head, width, heads=groups),
        *_up(f"{at}.self_attn.v_proj", groups * head, width, heads=groups),
        *_down(f"{at}.self_attn.o_proj", width, heads * head),
    )
    beside = (
        *_whole("vision_tower.patch_embedder.input_proj", width, COLOURS * patch * patch),
        *_whole("vision_tower.patch_embedder.position_embedding_table", 2 * rows, width),
        *_whole("embed_vision.embedding_projection", hidden, width, linear=True),
    )
    return Tower(layers, heads, (*layer, *_gated(f"{at}.mlp", width, inner)), beside)


_SANDWICH = ("input", "post_attention", "pre_feedforward", "post_feedforward")


def gemma3(vision: Fields, hidden: int, outer: Fields) -> Tower | None:
    """Gemma 3: SigLIP without a head, and a projector of one matrix behind an RMSNorm."""
    del outer
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "image_size", "patch_size")
    found = sizes(vision, *names)
    if found is None:
        return None
    layers, width, inner, heads, image, patch = found
    at, top = "vision_tower.vision_model.encoder.layers.0", "vision_tower.vision_model"
    beside = (
        *_whole(f"{top}.embeddings.patch_embedding", width, COLOURS * patch * patch, bias=True),
        *_whole(f"{top}.embeddings.position_embedding", (image // patch) ** 2, width),
        *_norms(width, f"{top}.post_layernorm"),
        *_whole("multi_modal_projector.mm_input_projection_weight", width, hidden),
        *_norms(width, "multi_modal_projector.mm_soft_emb_norm", bias=False),
    )
    norms = _norms(width, f"{at}.layer_norm1", f"{at}.layer_norm2")
    return Tower(
        layers,
        heads,
        (*norms, *_attention(f"{at}.self_attn", width, heads, out="out_proj"), *_mlp(f"{at}.mlp.fc", width, inner)),
        beside,
    )


def mistral3(vision: Fields, hidden: int, outer: Fields) -> Tower | None:
    """Mistral 3: Pixtral with RMSNorms and gated MLPs, a patch merger, and a projector of two matrices."""
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "patch_size")
    found = sizes(vision, *names)
    if found is None:
        return None
    layers, width, inner, heads, patch = found
    head, colours = vision.count("head_dim", width // heads), vision.count("num_channels", COLOURS)
    merge, biased = outer.count("spatial_merge_size", 2), outer.flag("multimodal_projector_bias", False)
    at, join = "vision_tower.transformer.layers.0", "multi_modal_projector"
    beside = (
        *_whole("vision_tower.patch_conv", width, colours * patch * patch),
        *_norms(width, "vision_tower.ln_pre", f"{join}.norm", bias=False),
        *_whole(f"{join}.patch_merger.merging_layer", width, width * merge * merge),
        *_up(f"{join}.linear_1", hidden, width, bias=biased),
        *_down(f"{join}.linear_2", hidden, hidden, bias=biased),
    )
    norms = _norms(width, f"{at}.attention_norm", f"{at}.ffn_norm", bias=False)
    attention = _attention(f"{at}.attention", width, heads, inner=heads * head, bias=False, out="o_proj")
    return Tower(layers, heads, (*norms, *attention, *_gated(f"{at}.feed_forward", width, inner)), beside)


def kimi(vision: Fields, hidden: int, outer: Fields, *, newer: bool = False) -> Tower | None:
    """Kimi K2.5 and K3: MoonViT with learned positions; the class of the `newer` has RMSNorms, wider attention and no
    biases where the file does not say otherwise."""
    del outer
    names = ("vt_num_hidden_layers", "vt_hidden_size", "vt_intermediate_size", "patch_size")
    found = sizes(vision, *names, "init_pos_emb_height", "init_pos_emb_width")
    kernel = vision.items("merge_kernel_size", most=2)
    if found is None or kernel is None:
        return None
    layers, width, inner, patch, high, wide = found
    merged = [size for size in kernel if type(size) is int and 0 < size <= 64]
    if len(merged) != 2:
        vision.problem("merge_kernel_size", "two whole numbers from 1 to 64")
        return None
    heads = vision.count("vt_num_attention_heads", 12 if newer else 16, high=65_536)
    across = vision.count("qkv_hidden_size", 1_536 if newer else width)
    layered = vision.text("norm_type", "rmsnorm" if newer else "layernorm") == "layernorm"
    second = vision.text("mm_projector_type", "patchmergerv2" if newer else "patchmerger") == "patchmergerv2"
    joined = vision.count("mm_hidden_size", width) * merged[0] * merged[1]
    at = "vision_tower.encoder.blocks.0"
    beside = [
        *_whole("vision_tower.patch_embed.proj", width, COLOURS * patch * patch,
                bias=vision.flag("patch_embed_proj_bias", not newer)),
        *_whole("vision_tower.patch_embed.pos_emb.weight", high * wide, width),
        *_norms(width, "vision_tower.encoder.final_layernorm", bias=layered),
    ]  # fmt: skip
    if second:
        beside += _norms(hidden, "mm_projector.post_norm", bias=False)
    else:
        beside += _norms(joined // (merged[0] * merged[1]), "mm_projector.pre_norm")
    beside += [
        *_whole("mm_projector.proj.0", joined, joined, bias=not second, linear=True),
        *_whole("mm_projector.proj.2", hidden, joined, bias=not second, linear=True),
    ]
    layer = (
        *_norms(width, f"{at}.norm0", f"{at}.norm1", bias=layered),
        *_attention(at, width, heads, inner=across, bias=vision.flag("attn_bias", not newer)),
        *_mlp(f"{at}.mlp.fc", width, inner, bias=vision.flag("linear_bias", not newer)),
    )
    return Tower(layers, heads, layer, tuple(beside))


def kimi3(vision: Fields, hidden: int, outer: Fields) -> Tower | None:
    """Kimi K3: MoonViT as its own configuration class has it."""
    return kimi(vision, hidden, outer, newer=True)


TOWERS: Mapping[str, tuple[str, Callable[[Fields, int, Fields], Tower | None]]] = {
    "Qwen3": ("qwen3", qwen3),
    "Qwen3-MoE": ("qwen3", qwen3),
    "Qwen3.5": ("qwen3", qwen35),
    "Qwen3.5-MoE": ("qwen3", qwen35),
    "Qwen2.5-VL": ("qwen2.5", qwen25),
    "Llama 4": ("llama4", llama4),
    "Gemma 3": ("siglip", gemma3),
    "Gemma 4": ("gemma4", gemma4),
    "Mistral": ("pixtral", mistral3),
    "Kimi K2": ("moonvit", kimi),
    "Kimi K3": ("moonvit3", kimi3),
}
"""By family: the encoder's own name, and the reader of its tensors."""
