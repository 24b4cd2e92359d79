"""The vision encoder of a multimodal configuration: its sizes as SGLang reads them, and its tensors where they follow."""

from __future__ import annotations

from enginemem.architecture import Vision
from enginemem.hf_config.fields import Fields
from enginemem.hf_config.parts import Tensors
from enginemem.hf_config.rules import Quantization
from enginemem.hf_config.towers import TOWERS
from enginemem.tensors import Block, Inventory
from enginemem.units import gb

_PLAIN = ("llama4", "moonvit", "moonvit3")
"""Encoders that the engines load without the checkpoint's quantisation."""
_LISTLESS = ("gptq", "awq")
"""Methods whose files need not list what they left alone; encoders always are."""


def read_vision(
    vision: Fields, outer: Fields, family: str, *, hidden: int, class_name: str, quantization: Quantization | None
) -> Vision:
    """What the encoder's fields say; no tensors where they do not follow from the file.

    `hidden` is the width of the language model, `outer` the fields around the two.
    """
    name, reader = TOWERS.get(family, ("", None))
    layers, width = vision.optional("num_hidden_layers"), vision.optional("hidden_size")
    if family == "Kimi K2":
        # The configuration class that SGLang has for it fills in the sizes that the file calls by other names.
        layers, width = vision.count("vt_num_hidden_layers", 27), vision.count("vt_hidden_size", 1_152)
    tower = None if reader is None or class_name.endswith("ForCausalLM") else reader(vision, hidden, outer)
    vision.check()
    outer.check()
    if tower is None:
        return Vision(layers, width, name=name)
    quantised = quantization if name not in _PLAIN else None
    block = Block(tower.layers, _stored(tower.layer, quantised))
    inventory = Inventory(_stored(tower.outer, quantised), (block,), (block,))
    return Vision(layers, width, inventory.parameters, name, tower.heads, inventory)


def _stored(tensors: Tensors, quantization: Quantization | None) -> Tensors:
    """The tensors in the formats that the checkpoint stores them in."""
    if quantization is None or quantization.method in _LISTLESS:
        return tensors
    return tuple([tensor._replace(form=quantization.form_of(tensor.name, tensor)) for tensor in tensors])


def vision_note(vision: Vision) -> str:
    """What is counted of the encoder, in a sentence."""
    if vision.parameters is None:
        return (
            "the size of the vision encoder does not follow from this file: its weights are left out, and the assumed "
            "memory has to cover them"
        )
    stored = vision.inventory.stored_bytes
    return (
        f"the vision encoder's {vision.parameters:,} parameters take {gb(stored)} in the checkpoint; they are counted as "
        "weights where an engine loads them, its work is part of the assumed runtime memory"
    )
