"""The vision encoder's share of one GPU's weights.

By default (`mm_encoder_tp_mode` "weights") the encoder's matrices are cut over the GPUs as the language model's are;
`--language-model-only` leaves it out. Source rules: `MultiModalConfig` in vllm/config/multimodal.py,
`is_vit_use_data_parallel` in vllm/model_executor/models/vision.py, and the classes in qwen3_vl.py, qwen2_5_vl.py,
mllama4.py, gemma4_mm.py, gemma3_mm.py, siglip.py, mistral3.py, pixtral.py, kimi_k25.py and kimi_k25_vit.py at 0.32.0.
"""

from __future__ import annotations

from typing import NamedTuple

from enginemem.architecture import Vision
from enginemem.encoder import EncoderBytes, encoder_bytes, encoder_problem
from enginemem.memo import per_model

WHOLE = ("gemma4",)
"""Encoders of Transformers' own classes, which every GPU holds whole (`recursive_replace_linear`)."""
FALLS_BACK = ("moonvit", "moonvit3")
"""Encoders that are held whole where their heads do not divide among the GPUs."""


class Share(NamedTuple):
    """Bytes on one of the GPUs, or the problem that stops the start; `spread` is the GPUs that the matrices are cut over."""

    bytes: EncoderBytes
    spread: int
    problem: str | None = None


@per_model
def encoder_share(vision: Vision, *, tp: int, vocabulary_multiple: int) -> Share:
    """The encoder on one of `tp` GPUs."""
    spread = 1 if vision.name in WHOLE or (vision.name in FALLS_BACK and vision.heads % tp) else tp
    held = encoder_bytes(vision.inventory, tp=spread, vocabulary_multiple=vocabulary_multiple)
    if spread < tp:
        held = EncoderBytes(0, held.total)
    return Share(held, spread, encoder_problem(vision.inventory, spread))
