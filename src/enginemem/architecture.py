"""Architecture facts of a model: layers, heads, vocabulary, and the parameters that one GPU holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from enginemem import dataset
from enginemem.tensors import Inventory, splitting_problem
from enginemem.units import Exact

LayerKind = Literal["full", "sliding", "chunked", "mla", "compressed", "recurrent", "none"]
"""What a layer caches; `compressed` is one row for several tokens, `none` a layer without a cache (an MLP or experts
alone)."""


class Recurrent(NamedTuple):
    """The state that a recurrent layer keeps for one request, before any sharding; sizes in elements.

    `mixer` is mamba1, mamba2, gdn or kda. The convolution keeps `kernel` - 1 columns of `channels` channels, which are
    `inner` channels of the heads and those of `groups` groups of `group_width` (copied once there are more GPUs than
    groups; 0 groups: all channels belong to heads). The state is `heads` x `rows` x `columns` in elements of `dtype`
    (None: what the engine takes by default).
    """

    mixer: str
    heads: int
    rows: int
    columns: int
    channels: int
    kernel: int
    groups: int = 0
    group_width: int = 0
    dtype: str | None = None


class LayerSpec(NamedTuple):
    """`layers` consecutive layers of one kind, before any sharding.

    `head_size` is the width of K (of the latent row for `mla`), `v_head_size` the width of V (0 for `mla`), in
    elements; `window` and `chunk` in tokens; `states` are the shapes of a recurrent layer's state tensors, whose first
    axis belongs to heads. `index_head` is the width of a sparse indexer's key beside the row, 0 without one. `tokens` is
    how many tokens one row stands for.
    """

    kind: LayerKind
    layers: int
    kv_heads: int
    head_size: int
    v_head_size: int
    window: int | None = None
    chunk: int | None = None
    states: tuple[tuple[int, ...], ...] = ()
    index_head: int = 0
    recurrent: Recurrent | None = None
    tokens: int = 1


class Rope(NamedTuple):
    """A rotary embedding: `width` elements of a head over `positions` trained positions, stretched by `factor`.

    `type` is the scaling's name, None for a plain one; `original` the positions that the factor starts from, None where
    neither the file nor Transformers puts them there; `part` what it serves: layers of a kind, the indexer, or all.
    `nested` is whether the file states the scaling by kind of layer.
    """

    type: str | None
    width: int
    positions: int
    factor: Exact = 1
    original: int | None = None
    part: str = "all"
    nested: bool = False


class Vision(NamedTuple):
    """The vision encoder as the configuration names it, for the engines' reserves; None where it has no such field.

    `parameters` are its own, projector included; None where the configuration does not give them. `name` is the
    encoder's own name, `heads` those of its attention, `inventory` its tensors with their largest cut over GPUs.
    """

    layers: int | None
    hidden_size: int | None
    parameters: int | None = None
    name: str = ""
    heads: int = 0
    inventory: Inventory = Inventory((), ())


class Experts(NamedTuple):
    """A mixture of experts: `total` experts a layer, `active` of them a token, on `layers` layers.

    `parameters_each` is the parameter count of one expert in one layer.
    """

    total: int
    active: int
    layers: int
    parameters_each: int


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
    model_type: str = ""
    inventory: Inventory = Inventory((), ())
    ropes: tuple[Rope, ...] = ()
    lengths: tuple[tuple[str, int], ...] = ()
    """Lengths that the file states under other names than max_position_embeddings, by name, in tokens."""
    original_max_position: int | None = None
    """Positions of the first training that stand beside the scaling, not in it (Phi)."""
    latent_rank: int | None = None
    """Width of an MLA row without its rotary part, elements."""
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    """The KV element type that the checkpoint asks for; None: the model's own."""
    vision: Vision | None = None
    sinks: bool = False
    notes: tuple[str, ...] = ()
    unmodeled: str | None = None
    """Why no engine's rules here lay out the cache, whatever the engine; None where they do."""
    registered: tuple[str, ...] = ()
    """The classes that engines register for the family, where `class_name` is none of them; empty where it is one."""
    configuration: str = ""
    """The fields that these facts were read from, as JSON; empty for a preset, whose id says as much."""

    @classmethod
    def from_hf_config(
        cls, config: Mapping[str, Any], *, hf_quant_config: Mapping[str, Any] | None = None
    ) -> Architecture:
        """The facts that a public `config.json` states, with its `hf_quant_config.json` where there is one.

        Raises InvalidInputs, which names every bad field with its path, the value and what is allowed, and
        UnknownArchitecture for a model type, class or quantisation that is not known here.
        """
        from enginemem.configuration import read  # noqa: PLC0415 - the parser builds on this module

        return read(config, hf_quant_config)

    @property
    def num_layers(self) -> int:
        """The number of layers; one that caches in two ways counts once."""
        return sum([block.layers for block in self.inventory.blocks]) or sum([spec.layers for spec in self.layers])

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
        if self.experts is None and self.intermediate_size % tp:
            return f"{self.name} has an intermediate size of {self.intermediate_size}, which {tp} does not divide"
        for block in self.inventory.kinds if tp > 1 else ():
            for tensor in block.tensors:
                problem = splitting_problem(tensor, tp)
                if problem is not None:
                    return f"{self.name} has {problem}, which {tp} does not divide"
        return None


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
    from enginemem.hf_config import parse  # noqa: PLC0415 - the parser builds on this module

    facts = _catalogue()[model_id]
    return parse(configuration_of(facts))._replace(
        id=model_id,
        name=facts["name"],
        hub_id=facts["hub_id"],
        hub_aliases=tuple(facts["hub_aliases"]),
        family=facts["family"],
    )


_MODEL_TYPES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}


def _numbers(value: Any) -> Any:
    """Decimals, which data files quote, as numbers."""
    if isinstance(value, Mapping):
        return {key: _numbers(entry) for key, entry in value.items()}
    if isinstance(value, str) and value.replace(".", "", 1).isdecimal():
        return float(value)
    return value


def configuration_of(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts of a preset under the names that a configuration gives them."""
    if "config" in facts:
        config: Mapping[str, Any] = _numbers(facts["config"])
        return config
    rope = facts["rope"]
    return {
        "model_type": _MODEL_TYPES[facts["architecture"]],
        "architectures": [facts["architecture"]],
        "dtype": {"bf16": "bfloat16", "fp16": "float16"}[facts["dtype"]],
        "hidden_size": facts["hidden_size"],
        "intermediate_size": facts["intermediate_size"],
        "num_hidden_layers": facts["layers"],
        "num_attention_heads": facts["heads"],
        "num_key_value_heads": facts["kv_heads"],
        "head_dim": facts["head_dim"],
        "vocab_size": facts["vocabulary"],
        "max_position_embeddings": facts["max_position"],
        "tie_word_embeddings": facts["tied_embeddings"],
        "attention_bias": facts["output_bias"],
        "sliding_window": facts["sliding_window"],
        "rope_scaling": None
        if rope is None
        else {
            "rope_type": rope["type"],
            "factor": float(rope["factor"]),
            "original_max_position_embeddings": rope["original_max_position"],
        },
    }


def model_facts(model_id: str) -> Mapping[str, Any]:
    """The stored facts of a preset with their source, as the data file has them."""
    return _catalogue()[model_id]
