"""Bytes of the parameters on one GPU."""

from __future__ import annotations

from enginemem.architecture import Architecture
from enginemem.derivation import Derivation, Operand
from enginemem.encoder import UNSIZED, sized
from enginemem.release import EngineRelease
from enginemem.tensors import held_bytes, narrowed


def record(model: Architecture, release: EngineRelease, derivation: Derivation, *, tp: int, weight_dtype: str) -> int:
    """Bytes of the parameters on one of `tp` GPUs, with their steps; `weight_dtype` fp8 narrows the layers' matrices
    only, auto takes them as the checkpoint stores them.

    The vocabulary is split in rows, rounded up. Source rule: modules/embedding.py LMHead, modules/linear.py Linear.
    """
    multiple, wide = release.integer("vocabulary_multiple"), release.integer("weight_bytes")
    held = held_bytes(model.inventory, tp=tp, vocabulary_multiple=multiple, linear=narrowed(weight_dtype))
    fp8 = weight_dtype == "fp8"
    stored = weight_dtype == "auto" and model.quantization is not None
    narrow = release.integer("fp8_weight_bytes") if fp8 else wide
    linear = held.linear + held.scales
    operands: dict[str, Operand] = {"parameters": (linear // narrow, "parameters"), "size": (narrow, "bytes")}
    if stored:
        operands = {"elements": (held.linear, "bytes"), "scales": (held.scales, "bytes")}
    note = "FP8: one byte a parameter, scales not counted." if fp8 else None
    derivation.add(
        "weights.linear",
        "Matrices of the layers",
        "elements + scales" if stored else "parameters * size",
        linear,
        "bytes",
        operands,
        "quantization" if fp8 or stored else "weights",
        role="add",
        note=f"Stored as the checkpoint's {model.quantization} quantisation says." if stored else note,
    )
    rest = held.embedding + held.head + held.small
    parts: dict[str, Operand] = {
        "embedding": (held.embedding // wide, "parameters"),
        "head": (held.head // wide, "parameters"),
        "small": (held.small // wide, "parameters"),
        "size": (wide, "bytes"),
    }
    plain = not any(part % wide for part in (held.embedding, held.head, held.small))
    if not plain:
        names = ("embedding", "head", "small")
        parts = dict(zip(names, [(part, "bytes") for part in (held.embedding, held.head, held.small)], strict=True))
    derivation.add(
        "weights.sixteen_bit",
        "Embedding, head, norms, biases",
        "(embedding + head + small) * size" if plain else "embedding + head + small",
        rest,
        "bytes",
        parts,
        "embedding",
        role="add",
    )
    total, expression = linear + rest, "linear + sixteen_bit"
    summed: dict[str, Operand] = {"linear": (linear, "bytes"), "sixteen_bit": (rest, "bytes")}
    encoder = _record_encoder(model, derivation)
    if encoder:
        total, expression = total + encoder, f"{expression} + vision"
        summed["vision"] = (encoder, "bytes")
    derivation.add(
        "weights.total",
        "Weights per GPU",
        expression,
        total,
        "bytes",
        summed,
        "weights",
        note=UNSIZED if model.vision is not None and not encoder else None,
    )
    return total


def _record_encoder(model: Architecture, derivation: Derivation) -> int:
    """The vision encoder's bytes, whole on every GPU: an assumption, since no text of the release says how it is cut."""
    if model.vision is None or not sized(model.vision):
        return 0
    stored = model.vision.inventory.stored_bytes
    derivation.add(
        "weights.vision",
        "Vision encoder with its projector, assumed whole",
        "stored",
        stored,
        "bytes",
        {"stored": (stored, "bytes")},
        "vision",
        role="add",
        note="An assumption: whole on every GPU, in the checkpoint's types; how the release cuts it is not known here.",
    )
    return stored
