"""From a public `config.json` to an Architecture: checked field by field, nothing guessed.

`parse` picks the family by `model_type`, checks the class, and lets the family's reader say what each layer holds and
caches. What the rules here do not know is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from enginemem.architecture import Architecture, Experts, LayerSpec, Rope
from enginemem.hf_config.defaults import WithDefaults, with_defaults
from enginemem.hf_config.families import FAMILIES, Family
from enginemem.hf_config.fields import Fields, UnknownArchitecture
from enginemem.hf_config.quantization import stated
from enginemem.hf_config.readers import READERS, quantization_reader
from enginemem.hf_config.rope import read_lengths, read_original, read_ropes
from enginemem.hf_config.rules import Quantization
from enginemem.hf_config.shape import Decoded, Layer
from enginemem.hf_config.vision import read_vision, vision_note
from enginemem.inputs import FieldError, nearest
from enginemem.tensors import Inventory, Tensor, distinct, joined

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
    ropes = read_ropes(fields, family, decoded)
    ranges = read_lengths(fields), read_original(fields, ropes)
    fields.check()
    taken = fields.values.note if isinstance(fields.values, WithDefaults) else ""
    unread = _UNREAD if extra is not None and stated(outer, extra) is not None else ""
    decoded = decoded._replace(notes=(*decoded.notes, *[note for note in (taken, unread) if note]))
    return _assembled(outer, family, decoded, quantization, ropes)._replace(
        lengths=ranges[0], original_max_position=ranges[1]
    )


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
    vision = None
    if encoder is not None:
        vision = read_vision(
            encoder, outer, family.name, hidden=shape.hidden, class_name=str(classes[0]), quantization=quantization
        )
    if not family.verified:
        notes += ("written from the class's fields, without a public configuration of this family at hand: unverified",)
    if vision is not None:
        notes += (vision_note(vision),)
    if quantization is None:
        notes += (
            f"no quantisation is named, so weights count as {shape.form.name}; where the checkpoint has an "
            "hf_quant_config.json, it is needed too",
        )
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
        unmodeled=f"{classes[0]}: {family.unmodeled}" if family.unmodeled else None,
        registered=tuple([name for name in family.classes if name not in family.foreign])
        if classes[0] in family.foreign
        else (),
    )
