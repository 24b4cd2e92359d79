"""The vision encoder's share of one GPU's weights.

The encoder shards over the GPUs like the language model unless `--mm-enable-dp-encoder`. Source rules: `VisionAttention`
in python/sglang/srt/layers/attention/vision.py and the classes in models/qwen3_vl.py, qwen2_5_vl.py, mllama4.py,
gemma4_vision.py, gemma3_mm.py, siglip.py, pixtral.py, mistral.py, kimi_k25.py and kimi_k3_vl.py at 0.5.22.
"""

from __future__ import annotations

from typing import NamedTuple

from enginemem.architecture import Architecture
from enginemem.encoder import EncoderBytes, as_cut, encoder_bytes, encoder_problem
from enginemem.memo import per_model
from enginemem.tensors import Split, Tensor

POSITIONS = ("visual.pos_embed", "vision_tower.vision_model.embeddings.position_embedding")
"""Learned positions that are kept like a vocabulary: padded, and cut by rows (`VocabParallelEmbedding`)."""
NONE = EncoderBytes(0, 0)


class Share(NamedTuple):
    """Bytes on one of the GPUs, or the problem that stops the start."""

    bytes: EncoderBytes
    problem: str | None = None


def cut_of(name: str, tensor: Tensor) -> Split:
    """How a tensor of the encoder `name` is cut: MoonViT's MLPs are plain layers, K3's whole encoder is, and the
    projector of Mistral 3 is Transformers' own."""
    if tensor.name in POSITIONS:
        return "vocabulary"
    plain = name == "moonvit3" or (name == "moonvit" and ".mlp." in tensor.name)
    if plain or (name == "pixtral" and tensor.name.startswith("multi_modal_projector")):
        return "whole"
    return tensor.split


@per_model
def encoder_share(model: Architecture, *, tp: int, vocabulary_multiple: int, left_out: tuple[str, ...]) -> Share:
    """The encoder on one of `tp` GPUs; nothing for classes of `left_out`, which load none unless asked to."""
    vision = model.vision
    if vision is None or vision.parameters is None or model.class_name in left_out:
        return Share(NONE)
    inventory = as_cut(vision.inventory, lambda tensor: cut_of(vision.name, tensor))
    held = encoder_bytes(inventory, tp=tp, vocabulary_multiple=vocabulary_multiple)
    return Share(held, encoder_problem(inventory, tp))
