"""The readers by name: what each layer holds and caches, and how the checkpoint stores its matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from enginemem.hf_config.decoder import read_decoder, read_gpt_oss, read_latent, read_llama4, read_mimo_v2, read_nas
from enginemem.hf_config.deepseek_v4 import read_deepseek_v4, read_quantization_v4
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import Fields
from enginemem.hf_config.gemma import read_gemma4
from enginemem.hf_config.mamba import read_falcon, read_granite, read_jamba
from enginemem.hf_config.minimax import read_minimax_m3
from enginemem.hf_config.quantization import read_quantization
from enginemem.hf_config.recurrent import read_gdn, read_kda, read_nemotron
from enginemem.hf_config.rules import Quantization
from enginemem.hf_config.shape import Decoded
from enginemem.hf_config.step import read_step

READERS: Mapping[str, Callable[[Fields, Fields, Family], Decoded]] = {
    "decoder": read_decoder,
    "latent": read_latent,
    "gpt_oss": read_gpt_oss,
    "llama4": read_llama4,
    "gemma4": read_gemma4,
    "mimo_v2": read_mimo_v2,
    "nas": read_nas,
    "gdn": read_gdn,
    "nemotron": read_nemotron,
    "kda": read_kda,
    "granite": read_granite,
    "falcon": read_falcon,
    "jamba": read_jamba,
    "deepseek_v4": read_deepseek_v4,
    "minimax_m3": read_minimax_m3,
    "step": read_step,
}
"""Readers of a family: (fields of the language model, those of the whole file, family)."""


def quantization_reader(reader: str) -> Callable[[Fields, Fields | None], Quantization | None]:
    """What reads the formats of a family's checkpoint: (fields of the whole file, of its hf_quant_config.json)."""
    return read_quantization_v4 if reader == "deepseek_v4" else read_quantization
