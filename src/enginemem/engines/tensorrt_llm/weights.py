"""Bytes of the parameters on one GPU."""

from __future__ import annotations

from enginemem.architecture import Architecture
from enginemem.derivation import Derivation
from enginemem.release import EngineRelease


def record(model: Architecture, release: EngineRelease, derivation: Derivation, *, tp: int, fp8: bool) -> int:
    """Bytes of the parameters on one of `tp` GPUs, with their steps; FP8 narrows the layers' matrices only.

    The vocabulary is split in rows, rounded up. Source rule: modules/embedding.py LMHead, modules/linear.py Linear.
    """
    shard = model.shard(tp=tp, vocabulary_multiple=release.integer("vocabulary_multiple"))
    wide = release.integer("weight_bytes")
    narrow = release.integer("fp8_weight_bytes") if fp8 else wide
    linear = shard.linear * narrow
    rest = shard.embedding + shard.head + shard.small
    derivation.add(
        "weights.linear",
        "Matrices of the layers",
        "parameters * size",
        linear,
        "bytes",
        {"parameters": (shard.linear, "parameters"), "size": (narrow, "bytes")},
        "quantization" if fp8 else "weights",
        role="add",
        note="FP8: one byte a parameter, scales not counted." if fp8 else None,
    )
    derivation.add(
        "weights.sixteen_bit",
        "Embedding, head, norms, biases",
        "(embedding + head + small) * size",
        rest * wide,
        "bytes",
        {
            "embedding": (shard.embedding, "parameters"),
            "head": (shard.head, "parameters"),
            "small": (shard.small, "parameters"),
            "size": (wide, "bytes"),
        },
        "embedding",
        role="add",
    )
    total = linear + rest * wide
    derivation.add(
        "weights.total",
        "Weights on one GPU",
        "linear + sixteen_bit",
        total,
        "bytes",
        {"linear": (linear, "bytes"), "sixteen_bit": (rest * wide, "bytes")},
        "weights",
    )
    return total
