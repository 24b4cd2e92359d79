"""How many parameters the vision encoder of a multimodal model has; the engines' rules here do not count them.

Source rules: modeling_qwen3_vl.py, modeling_qwen3_5.py, modeling_llama4.py, modeling_gemma4.py and modeling_kimi_k25.py
of Transformers 5.24.0, projectors to the language model included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from enginemem.architecture import Vision
from enginemem.hf_config.fields import Fields

COLOURS = 3


def read_vision(vision: Fields, family: str, hidden: int) -> Vision:
    """What the encoder's fields say; `parameters` is None where they do not give the count."""
    count = _COUNTS.get(family)
    layers, width = vision.optional("num_hidden_layers"), vision.optional("hidden_size")
    found = Vision(layers, width, None if count is None else count(vision, hidden))
    vision.check()
    return found


def _sizes(vision: Fields, *names: str) -> list[int] | None:
    """Sizes that are all in the file, or None."""
    found = [vision.optional(name) for name in names]
    return [size for size in found if size is not None] if None not in found else None


def _block(width: int, inner: int) -> int:
    """Attention and an MLP of two matrices, with biases and two norms."""
    return 4 * width + 4 * (width * width + width) + 2 * width * inner + inner + width


def _qwen3(vision: Fields, _: int, joints: int = 3) -> int | None:
    names = ("depth", "hidden_size", "intermediate_size", "out_hidden_size", "patch_size")
    sizes = _sizes(vision, *names, "temporal_patch_size", "spatial_merge_size")
    listed = vision.items("deepstack_visual_indexes")
    if sizes is None:
        return None
    layers, width, inner, out, patch, frames, merge = sizes
    colours, rows = vision.count("in_channels", COLOURS), vision.count("num_position_embeddings", 2_304)
    wide = width * merge * merge
    mergers = len(listed) if listed is not None else joints
    total = colours * frames * patch * patch * width + width + rows * width + layers * _block(width, inner)
    joined = wide * wide + wide + out * wide + out
    return total + 2 * width + joined + mergers * (2 * wide + joined)


def _qwen35(vision: Fields, hidden: int) -> int | None:
    return _qwen3(vision, hidden, joints=0)


def _llama4(vision: Fields, hidden: int) -> int | None:
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "image_size", "patch_size", "projector_input_dim")
    sizes = _sizes(vision, *names, "projector_output_dim", "vision_output_dim")
    if sizes is None:
        return None
    layers, width, inner, image, patch, into, out, seen = sizes
    total = width + ((image // patch) ** 2 + 1) * width + COLOURS * patch * patch * width + 4 * width
    return total + layers * _block(width, inner) + into * inner + out * out + hidden * seen


def _gemma4(vision: Fields, hidden: int) -> int | None:
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    sizes = _sizes(vision, *names, "head_dim", "patch_size", "position_embedding_size")
    if sizes is None:
        return None
    layers, width, inner, heads, groups, head, patch, rows = sizes
    layer = 2 * (heads + groups) * head * width + 2 * head + 3 * inner * width + 4 * width
    return 2 * rows * width + COLOURS * patch * patch * width + layers * layer + hidden * width


def _kimi(vision: Fields, hidden: int) -> int | None:
    names = ("vt_num_hidden_layers", "vt_hidden_size", "vt_intermediate_size", "patch_size")
    sizes = _sizes(vision, *names, "init_pos_emb_height", "init_pos_emb_width", "mm_hidden_size")
    kernel = vision.items("merge_kernel_size", most=2)
    if sizes is None or kernel is None:
        return None
    layers, width, inner, patch, high, wide, seen = sizes
    merged = [size for size in kernel if type(size) is int and 0 < size <= 64]
    if len(merged) != 2:
        vision.problem("merge_kernel_size", "two whole numbers from 1 to 64")
        return None
    joined = seen * merged[0] * merged[1]
    total = COLOURS * patch * patch * width + width + high * wide * width + layers * _block(width, inner) + 2 * width
    return total + 2 * seen + joined * joined + joined + hidden * joined + hidden


_COUNTS: Mapping[str, Callable[[Fields, int], int | None]] = {
    "Qwen3": _qwen3,
    "Qwen3-MoE": _qwen3,
    "Qwen3.5": _qwen35,
    "Qwen3.5-MoE": _qwen35,
    "Llama 4": _llama4,
    "Gemma 4": _gemma4,
    "Kimi K2": _kimi,
}
