"""Rotary embeddings and lengths as a configuration states them: what each engine makes of a factor is the engine's rule.

Source rules: `RotaryEmbeddingConfigMixin.standardize_rope_params` in modeling_rope_utils.py of Transformers 5, which
both vLLM 0.32.0 and SGLang 0.5.22 load configurations with.
"""

from __future__ import annotations

from enginemem.architecture import Rope
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_TOKENS, Fields
from enginemem.hf_config.shape import Decoded

PLAIN = ("default", "mrope", "proportional")
"""Scalings that stretch no position by themselves."""
WITH_ORIGINAL = ("llama3", "yarn", "longrope", "su")
"""Scalings whose original length Transformers fills in: the field beside them, the one in them, or the length itself."""
OTHER_LENGTHS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length")
"""Names of a length beside max_position_embeddings that both engines look for."""

_ORIGINAL = "original_max_position_embeddings"


def read_ropes(fields: Fields, family: Family, decoded: Decoded) -> tuple[Rope, ...]:
    """The rotary embeddings of the model; several where layers of different kinds turn differently."""
    if not decoded.rotary:
        return ()
    found = fields.inner(fields.first("rope_scaling", "rope_parameters"))
    parts: list[tuple[str, Fields | None, int]] = [("all", found, decoded.rotary)]
    nested = family.name == "Gemma 3"
    if found is not None and found.given("full_attention"):
        head, nested = fields.count("global_head_dim", decoded.rotary), True
        parts = [
            ("full", found.inner("full_attention"), head),
            ("sliding", found.inner("sliding_attention"), decoded.rotary),
        ]
    elif family.name == "Gemma 3":
        parts = [("full", found, decoded.rotary), ("sliding", None, decoded.rotary)]
    if any(spec.index_head for layer in decoded.layers for spec in layer.caches):
        parts.append(("indexer", found, decoded.rotary))
    positions = _positions(fields, family, decoded)
    plain = [(Rope(None, width, positions, part=part, nested=nested), place) for part, place, width in parts]
    return tuple([_rope(fields, place, decoded, rope) for rope, place in plain])


def _positions(fields: Fields, family: Family, decoded: Decoded) -> int:
    """Positions that a rotary cache is made for: Command R's classes take model_max_length where it is stated."""
    if family.name.startswith("Command R"):
        return fields.count("model_max_length", decoded.shape.positions, high=MOST_TOKENS)
    return decoded.shape.positions


def _rope(fields: Fields, place: Fields | None, decoded: Decoded, plain: Rope) -> Rope:
    """The embedding `plain` with the scaling that stands in `place`."""
    if place is None:
        return plain
    kind = place.text(place.first("rope_type", "type"), "default")
    factor = place.number("factor", 1, high=1_000_000)
    scaled = plain._replace(factor=factor.numerator if factor.denominator == 1 else factor)
    if kind in PLAIN:
        return scaled
    original = place.optional(_ORIGINAL, high=MOST_TOKENS)
    if kind in WITH_ORIGINAL:
        beside = None if plain.nested else fields.optional(_ORIGINAL, high=MOST_TOKENS)
        original = beside or original or decoded.shape.positions
    return scaled._replace(type=kind, original=original)


def read_original(fields: Fields, ropes: tuple[Rope, ...]) -> int | None:
    """The original length that stands beside a scaling of the whole model, tokens."""
    if not any(rope.type in WITH_ORIGINAL for rope in ropes):
        return None
    return fields.optional(_ORIGINAL, high=MOST_TOKENS)


def read_lengths(fields: Fields) -> tuple[tuple[str, int], ...]:
    """Lengths under other names than max_position_embeddings, in tokens."""
    found = [(name, fields.optional(name, high=MOST_TOKENS)) for name in OTHER_LENGTHS]
    return tuple([(name, length) for name, length in found if length is not None])
