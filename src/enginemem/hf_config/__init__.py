"""From a public `config.json` to an Architecture: checked field by field, nothing guessed.

`parse` picks the family by `model_type`, checks the class, and lets the family's reader say what each layer holds and
caches. What the rules here do not know is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from enginemem.architecture import Architecture, Experts, LayerSpec, Rope, Vision
from enginemem.hf_config.defaults import WithDefaults, with_defaults
from enginemem.hf_config.families import FAMILIES, Family
from enginemem.hf_config.fields import MOST_TOKENS, Fields, UnknownArchitecture
from enginemem.hf_config.quantization import Quantization, stated
from enginemem.hf_config.readers import READERS, quantization_reader
from enginemem.hf_config.shape import Decoded, Layer
from enginemem.hf_config.vision import read_vision
from enginemem.inputs import FieldError, nearest
from enginemem.tensors import BF16, Inventory, Tensor, distinct, joined
from enginemem.units import gb

# Scalings whose factor leaves max_position_embeddings as it is, beside those that the engines' own tables name.
_PLAIN_ROPES = ("default", "mrope", "proportional")

_UNREAD = (
    "hf_quant_config.json was not read: config.json has a quantization_config of its own, and vLLM and SGLang take that"
)


def parse(config: object, hf_quant_config: object = None) -> Architecture:
    """The Architecture of a configuration; raises InvalidInputs (every bad field) or UnknownArchitecture."""
    errors: list[FieldError] = []
    outer = _object(config, "config", errors)
    extra = None if hf_quant_config is None else _object(hf_quant_config, "hf_quant_config", errors)
    outer.check()
    family, fields = _family(outer)
    quantization = quantization_reader(family.reader)(outer, extra)
    decoded = READERS[family.reader](fields, outer, family)
    ropes = _ropes(fields, family, decoded)
    fields.check()
    taken = fields.values.note if isinstance(fields.values, WithDefaults) else ""
    unread = _UNREAD if extra is not None and stated(outer, extra) is not None else ""
    decoded = decoded._replace(notes=(*decoded.notes, *[note for note in (taken, unread) if note]))
    return _assembled(outer, family, decoded, quantization, ropes)


def _object(value: object, path: str, errors: list[FieldError]) -> Fields:
    if not isinstance(value, Mapping):
        errors.append(FieldError(path, type(value).__name__, "a JSON object"))
        return Fields({}, path, errors)
    return Fields(value, path, errors)


def _family(outer: Fields) -> tuple[Family, Fields]:
    """The family, and the fields of the language model (nested in multimodal configurations)."""
    fields = outer
    for name in ("text_config", "llm_config"):
        inner = outer.inner(name)
        if inner is not None:
            fields = inner
            break
    outer.check()
    model_type = outer.text("model_type")
    found = FAMILIES.get(model_type)
    if found is None:
        close = nearest(model_type[:80], tuple(FAMILIES))
        outer.errors.append(FieldError("config.model_type", repr(model_type[:60]), ", ".join(sorted(FAMILIES)), close))
        raise UnknownArchitecture(outer.errors)
    classes = outer.items("architectures", most=64)
    if classes is not None and (not classes or any(name not in found.classes for name in classes)):
        given = classes[0] if classes else "an empty list"
        outer.problem("architectures", ", ".join(found.classes), given)
        raise UnknownArchitecture(outer.errors)
    types = (fields.text("model_type", model_type), model_type, f"{model_type}_text")
    return found, Fields(with_defaults(fields.values, *types), fields.path, fields.errors)


def _ropes(fields: Fields, family: Family, decoded: Decoded) -> tuple[Rope, ...]:
    """The rotary embeddings of the model; several where layers of different kinds turn differently."""
    if not decoded.rotary:
        return ()
    found = fields.inner(fields.first("rope_scaling", "rope_parameters"))
    parts: list[tuple[str, Fields | None, int]] = [("all", found, decoded.rotary)]
    if found is not None and found.given("full_attention"):
        head = fields.count("global_head_dim", decoded.rotary)
        parts = [
            ("full", found.inner("full_attention"), head),
            ("sliding", found.inner("sliding_attention"), decoded.rotary),
        ]
    elif family.name == "Gemma 3":
        parts = [("full", found, decoded.rotary), ("sliding", None, decoded.rotary)]
    if any(spec.index_head for layer in decoded.layers for spec in layer.caches):
        parts.append(("indexer", found, decoded.rotary))
    return tuple([_rope(part, width, decoded, place) for part, place, width in parts])


def _rope(part: str, width: int, decoded: Decoded, place: Fields | None) -> Rope:
    positions = decoded.shape.positions
    if place is None:
        return Rope(None, width, positions, part=part)
    kind = place.text(place.first("rope_type", "type"), "default")
    if kind in _PLAIN_ROPES:
        return Rope(None, width, positions, part=part)
    factor = place.number("factor", 1, high=1_000_000)
    original = place.optional("original_max_position_embeddings", high=MOST_TOKENS)
    whole = factor.numerator if factor.denominator == 1 else factor
    return Rope(kind, width, positions, whole, original, part)


def _stored(layer: Layer, index: int, quantization: Quantization | None) -> tuple[Tensor, ...]:
    """A layer's tensors in the formats that the checkpoint stores them in."""
    if quantization is None:
        return layer.tensors
    return tuple([t._replace(form=quantization.form_of(f"layers.{index}.{t.name}", t)) for t in layer.tensors])


def _runs(layers: list[Layer]) -> tuple[LayerSpec, ...]:
    """The caches in layer order, equal neighbours joined."""
    runs: list[LayerSpec] = []
    for layer in layers:
        for spec in layer.caches:
            if runs and runs[-1]._replace(layers=1) == spec:
                runs[-1] = runs[-1]._replace(layers=runs[-1].layers + 1)
            else:
                runs.append(spec)
    return tuple(runs)


def _assembled(
    outer: Fields, family: Family, decoded: Decoded, quantization: Quantization | None,
    ropes: tuple[Rope, ...],
) -> Architecture:  # fmt: skip
    shape = decoded.shape
    tensors = [_stored(layer, index, quantization) for index, layer in enumerate(decoded.layers)]
    outside = decoded.outer
    if quantization is not None:
        outside = tuple([t._replace(form=quantization.form_of(t.name, t)) for t in outside])
    inventory = Inventory(outside, joined(tensors), distinct(tensors))
    classes = outer.items("architectures") or family.classes
    scaled = next((rope.type for rope in ropes if rope.type is not None and family.name != "Gemma 3"), None)
    notes, encoder = decoded.notes, outer.inner("vision_config")
    vision = None if encoder is None else read_vision(encoder, family.name, shape.hidden)
    if not family.verified:
        notes += ("written from the class's fields, without a public configuration of this family at hand: unverified",)
    if vision is not None:
        notes += (_left_out(vision),)
    moe = decoded.moe
    each = 0 if moe is None else (3 if moe.gated else 2) * moe.width * (moe.latent or shape.hidden)
    return Architecture(
        id="config.json",
        name=str(classes[0]),
        hub_id="",
        hub_aliases=(),
        family=family.name,
        class_name=str(classes[0]),
        dtype=shape.form.name,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head,
        vocabulary=shape.vocabulary,
        max_position=shape.positions,
        tied_embeddings=shape.tied,
        qkv_bias=decoded.biases,
        output_bias=decoded.output_bias,
        qk_norm=decoded.query_norm,
        layers=_runs(decoded.layers),
        parameters=inventory.parameters,
        rope_type=scaled,
        experts=None if moe is None else Experts(moe.total, moe.active, decoded.moe_layers, each),
        model_type=outer.text("model_type"),
        inventory=inventory,
        ropes=ropes,
        latent_rank=decoded.latent_rank,
        quantization=None if quantization is None else quantization.method,
        kv_cache_dtype=None if quantization is None else quantization.kv_cache,
        vision=vision,
        sinks=decoded.sinks,
        notes=notes,
        unmodeled=_unmodeled(family, str(classes[0])),
    )


def _unmodeled(family: Family, class_name: str) -> str | None:
    if class_name in family.foreign:
        registered = " or ".join([name for name in family.classes if name not in family.foreign])
        return f"none of the pinned releases is known to register the class {class_name}; they know {registered}"
    return f"{class_name}: {family.unmodeled}" if family.unmodeled else None


def _left_out(vision: Vision) -> str:
    size = ""
    if vision.parameters is not None:
        size = f"; its {vision.parameters:,} parameters take {gb(vision.parameters * BF16.bits // 8)} in 16 bits"
    return f"the vision encoder is left out: neither its weights nor its work are counted{size}"
