"""Bytes of parameters and buffers on one GPU.

The published budget subtracts parameters only; what the engine counts as loaded also holds buffers (rotary caches and
quantisation scales), which belong to the runtime assumption here. Source rules: `pad_vocab_size`,
`RotaryEmbedding` and `set_default_quant_scales` at 0.32.0; parameter bytes agree with measured models to the byte.
"""

from __future__ import annotations

from typing import NamedTuple

from enginemem.architecture import Architecture
from enginemem.engines.vllm.run import Run

BYTES_16BIT, BYTES_FP8 = 2, 1


class WeightBytes(NamedTuple):
    """Parameter bytes on one GPU: matrices of the layers, input embedding, output head, norms and biases."""

    linear: int
    embedding: int
    head: int
    small: int

    @property
    def total(self) -> int:
        """All parameters."""
        return self.linear + self.embedding + self.head + self.small


def weight_bytes(model: Architecture, *, tp: int, linear_bytes: int, vocabulary_multiple: int) -> WeightBytes:
    """Parameter bytes on one of `tp` GPUs with `linear_bytes` a parameter in the layers' matrices.

    Embedding, head, norms and biases stay 16-bit; the vocabulary is padded to `vocabulary_multiple` before the split.
    """
    shard = model.shard(tp=tp, vocabulary_multiple=vocabulary_multiple)
    return WeightBytes(
        linear=shard.linear * linear_bytes,
        embedding=shard.embedding * BYTES_16BIT,
        head=shard.head * BYTES_16BIT,
        small=shard.small * BYTES_16BIT,
    )


def buffer_bytes(*, positions: int, rotary_size: int, element_bytes: int, layers: int, scale_bytes: int) -> int:
    """Bytes of buffers that loading adds on one GPU: a cosine and sine cache of `positions` rows of `rotary_size`
    elements, and the quantisation scales of each attention layer. Neither is split over GPUs."""
    return positions * rotary_size * element_bytes + layers * scale_bytes


def record_weights(run: Run, *, linear_bytes: int) -> int:
    """Record the parameters on one GPU and the buffers that the runtime assumption has to cover; returns the
    parameter bytes."""
    model, steps = run.scenario.model, run.steps
    multiple = run.release.integer("vocabulary_multiple")
    weights = weight_bytes(model, tp=run.scenario.tp, linear_bytes=linear_bytes, vocabulary_multiple=multiple)
    fp8 = linear_bytes == BYTES_FP8
    steps.add(
        "weights.linear",
        "Matrices of the layers",
        "parameters * bytes_each",
        weights.linear,
        "bytes",
        {"parameters": (weights.linear // linear_bytes, "parameters"), "bytes_each": (linear_bytes, "bytes")},
        "parameters",
        role="add",
        note="no scales counted" if fp8 else None,
    )
    rows = {
        "rows": (weights.embedding // (BYTES_16BIT * model.hidden_size), "rows"),
        "hidden_size": (model.hidden_size, "elements"),
        "bytes_each": (BYTES_16BIT, "bytes"),
        "matrices": (1 if model.tied_embeddings else 2, "matrices"),
    }
    steps.add(
        "weights.vocabulary",
        "Input embedding and output head",
        "matrices * rows * hidden_size * bytes_each",
        weights.embedding + weights.head,
        "bytes",
        rows,
        "vocabulary",
        role="add",
        note="the head shares the embedding's matrix" if model.tied_embeddings else None,
    )
    steps.add(
        "weights.small",
        "Norms and biases",
        "parameters * bytes_each",
        weights.small,
        "bytes",
        {"parameters": (weights.small // BYTES_16BIT, "parameters"), "bytes_each": (BYTES_16BIT, "bytes")},
        "parameters",
        role="add",
    )
    steps.add(
        "weights.total",
        "Parameters on one GPU",
        "linear + vocabulary + small",
        weights.total,
        "bytes",
        {
            "linear": (weights.linear, "bytes"),
            "vocabulary": (weights.embedding + weights.head, "bytes"),
            "small": (weights.small, "bytes"),
        },
        "parameters",
    )
    _record_buffers(run)
    return weights.total


def _record_buffers(run: Run) -> None:
    model, layers = run.scenario.model, run.scenario.model.num_layers
    element, scales = run.release.integer("rope_cache_bytes"), run.release.integer("quant_scale_bytes")
    value = buffer_bytes(
        positions=model.max_position,
        rotary_size=model.head_dim,
        element_bytes=element,
        layers=layers,
        scale_bytes=scales,
    )
    run.steps.add(
        "weights.buffers",
        "Buffers, part of the runtime assumption",
        "positions * rotary_size * element + layers * scales",
        value,
        "bytes",
        {
            "positions": (model.max_position, "tokens"),
            "rotary_size": (model.head_dim, "elements"),
            "element": (element, "bytes"),
            "layers": (layers, "layers"),
            "scales": (scales, "bytes"),
        },
        "rope_cache",
        "quant_scales",
        note="the engine counts them as loaded; the published budget does not subtract them on their own",
    )
