"""Which matrices of a checkpoint are stored in which format: rules by module name."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.hf_config.names import Names, spellings
from enginemem.tensors import Format, Tensor, TensorKind

QUANTISED: tuple[TensorKind, ...] = ("attention", "indexer", "recurrent", "mlp", "shared_experts", "experts")
"""Matrices that a rule for all linear layers reaches; embeddings, heads, routers and norms only when named."""


class Rule(NamedTuple):
    """Matrices whose name is in `targets` (None: all linear layers) are stored as `form`; `linear`: linear layers alone,
    whatever else has such a name."""

    form: Format
    targets: Names | None
    linear: bool = False


class Quantization(NamedTuple):
    """The method's name, its rules (the first that reaches a matrix counts), the names left alone, and the element
    type of the KV cache that the checkpoint asks for (None: the model's own)."""

    method: str
    rules: tuple[Rule, ...]
    ignored: Names
    kv_cache: str | None = None

    def form_of(self, name: str, tensor: Tensor) -> Format:
        """The format of a tensor whose full module name is `name`."""
        names, linear = spellings(name), tensor.linear and tensor.kind in QUANTISED
        if any(spelling in self.ignored for spelling in names):
            return tensor.form
        for rule in self.rules:
            reached = linear if rule.targets is None or rule.linear else tensor.columns > 1
            if reached and (rule.targets is None or any(spelling in rule.targets for spelling in names)):
                return rule.form
        return tensor.form
