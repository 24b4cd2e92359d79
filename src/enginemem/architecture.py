"""Architecture facts of a model: layers, heads, vocabulary, and the parameters that one GPU holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from enginemem import dataset
from enginemem.units import ceil_div, round_up

LayerKind = Literal["full", "sliding", "chunked", "mla", "recurrent"]


class LayerSpec(NamedTuple):
    """`layers` consecutive layers of one kind, before any sharding.

    `head_size` is the width of K (of the latent row for `mla`), `v_head_size` the width of V (0 for `mla`), in
    elements; `window` and `chunk` in tokens; `states` are the shapes of a recurrent layer's state tensors.
    """

    kind: LayerKind
    layers: int
    kv_heads: int
    head_size: int
    v_head_size: int
    window: int | None = None
    chunk: int | None = None
    states: tuple[tuple[int, ...], ...] = ()


class Experts(NamedTuple):
    """A mixture of experts: `total` experts a layer, `active` of them a token, on `layers` layers.

    `parameters_each` is the parameter count of one expert in one layer.
    """

    total: int
    active: int
    layers: int
    parameters_each: int


class Shard(NamedTuple):
    """Parameters (elements) that one GPU holds: matrices of the layers, input embedding, output head, and the small
    tensors (norms and biases) that no quantisation touches."""

    linear: int
    embedding: int
    head: int
    small: int


class Architecture(NamedTuple):
    """The facts of one model; sizes in elements, lengths in tokens."""

    id: str
    name: str
    hub_id: str
    hub_aliases: tuple[str, ...]
    family: str
    class_name: str
    dtype: str
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    max_position: int
    tied_embeddings: bool
    qkv_bias: bool
    output_bias: bool
    qk_norm: bool
    layers: tuple[LayerSpec, ...]
    parameters: int
    rope_type: str | None = None
    experts: Experts | None = None

    @property
    def num_layers(self) -> int:
        """The number of layers."""
        return sum([spec.layers for spec in self.layers])

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through; all of them in a dense model."""
        if self.experts is None:
            return self.parameters
        idle = self.experts.total - self.experts.active
        return self.parameters - idle * self.experts.layers * self.experts.parameters_each

    def tensor_parallel_problem(self, tp: int) -> str | None:
        """Why the model cannot be split over `tp` GPUs, or None when it can."""
        if self.heads % tp:
            return f"{self.name} has {self.heads} attention heads, which {tp} does not divide"
        if self.kv_heads % tp and tp % self.kv_heads:
            return f"{self.name} has {self.kv_heads} KV heads; neither divides the other at tp {tp}"
        if self.intermediate_size % tp:
            return f"{self.name} has an intermediate size of {self.intermediate_size}, which {tp} does not divide"
        return None

    def shard(self, *, tp: int, vocabulary_multiple: int) -> Shard:
        """Parameters on one of `tp` GPUs, with the vocabulary padded to `vocabulary_multiple` before it is split.

        KV projections are replicated once `tp` exceeds the KV heads. A tied head costs nothing of its own.
        """
        hidden, layers = self.hidden_size, self.num_layers
        queries = self.heads // tp * self.head_dim
        keys_values = 2 * max(1, self.kv_heads // tp) * self.head_dim
        attention = hidden * (queries + keys_values) + queries * hidden
        mlp = 3 * hidden * (self.intermediate_size // tp)
        biases = (queries + keys_values if self.qkv_bias else 0) + (hidden if self.output_bias else 0)
        norms = 2 * hidden + (2 * self.head_dim if self.qk_norm else 0)
        rows = ceil_div(round_up(self.vocabulary, vocabulary_multiple), tp)
        return Shard(
            linear=layers * (attention + mlp),
            embedding=rows * hidden,
            head=0 if self.tied_embeddings else rows * hidden,
            small=layers * (biases + norms) + hidden,
        )


@cache
def _catalogue() -> Mapping[str, Mapping[str, Any]]:
    models: dict[str, Mapping[str, Any]] = {}
    for family in dataset.names("models"):
        models.update(dataset.read("models", f"{family}.json")["models"])
    return models


@cache
def _by_hub_id() -> Mapping[str, str]:
    return {
        hub_id.lower(): model_id
        for model_id, facts in _catalogue().items()
        for hub_id in (facts["hub_id"], *facts["hub_aliases"])
    }


def model_ids() -> tuple[str, ...]:
    """The preset ids, by family file."""
    return tuple(_catalogue())


def find_model(text: str) -> str | None:
    """The preset id that `text` names: an id, or a hub id such as `meta-llama/Llama-3.1-8B`, in any case."""
    lowered = text.strip().lower()
    return lowered if lowered in _catalogue() else _by_hub_id().get(lowered)


@cache
def load_model(model_id: str) -> Architecture:
    """The preset `model_id`; raises KeyError for an unknown id."""
    facts = _catalogue()[model_id]
    window = facts["sliding_window"]
    layer = LayerSpec(
        kind="full" if window is None else "sliding",
        layers=facts["layers"],
        kv_heads=facts["kv_heads"],
        head_size=facts["head_dim"],
        v_head_size=facts["head_dim"],
        window=window,
    )
    return Architecture(
        id=model_id,
        name=facts["name"],
        hub_id=facts["hub_id"],
        hub_aliases=tuple(facts["hub_aliases"]),
        family=facts["family"],
        class_name=facts["architecture"],
        dtype=facts["dtype"],
        hidden_size=facts["hidden_size"],
        intermediate_size=facts["intermediate_size"],
        heads=facts["heads"],
        kv_heads=facts["kv_heads"],
        head_dim=facts["head_dim"],
        vocabulary=facts["vocabulary"],
        max_position=facts["max_position"],
        tied_embeddings=facts["tied_embeddings"],
        qkv_bias=facts["qkv_bias"],
        output_bias=facts["output_bias"],
        qk_norm=facts["qk_norm"],
        layers=(layer,),
        parameters=facts["parameters"],
        rope_type=None if facts["rope"] is None else facts["rope"]["type"],
    )


def model_facts(model_id: str) -> Mapping[str, Any]:
    """The stored facts of a preset with their source, as the data file has them."""
    return _catalogue()[model_id]
