"""Schema of ``data/models/<family>.yaml``: architecture facts of the preset models, each with its source."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator

from enginemem.architecture import Architecture, configuration_of
from enginemem.schema.base import Identifier, Json, StrictModel, Text
from enginemem.schema.quantities import DecimalText

Count = Annotated[int, Field(ge=1)]
HubId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")]


class Rope(StrictModel):
    """How the rotary embedding is stretched beyond the context that the model was first trained on."""

    type: Text
    factor: Count | DecimalText
    original_max_position: Count


class ModelSource(StrictModel):
    """The public copy of the checkpoint's configuration that the facts were read from."""

    repository: HubId
    path: Text
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    note: Text | None = None


class Model(StrictModel):
    """A dense decoder: shapes and switches as its configuration states them, sizes in elements."""

    name: Text
    hub_id: HubId
    hub_aliases: list[HubId] = Field(description="Checkpoints with exactly the same facts.")
    architecture: Text
    dtype: Literal["bf16", "fp16"]
    hidden_size: Count
    intermediate_size: Count
    layers: Count
    heads: Count
    kv_heads: Count
    head_dim: Count
    vocabulary: Count
    max_position: Count
    tied_embeddings: bool
    qkv_bias: bool
    output_bias: bool
    qk_norm: bool
    rope: Rope | None
    sliding_window: Count | None
    parameters: Count
    source: ModelSource
    checked: date | None = Field(default=None, description="The file's own date when left out.")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads are no multiple of {self.kv_heads} KV heads")
        if self.parameters != self.derived_parameters():
            raise ValueError(f"the shape gives {self.derived_parameters()} parameters, not {self.parameters}")
        return self

    def derived_parameters(self) -> int:
        """Parameters counted from the shape: embeddings, attention, gated MLP and norms."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = self.hidden_size * (2 * queries + 2 * keys)
        attention += queries + 2 * keys if self.qkv_bias else 0
        attention += self.hidden_size if self.output_bias else 0
        attention += 2 * self.head_dim if self.qk_norm else 0
        layer = attention + 3 * self.hidden_size * self.intermediate_size + 2 * self.hidden_size
        tables = self.vocabulary * self.hidden_size * (1 if self.tied_embeddings else 2)
        return tables + self.layers * layer + self.hidden_size


class ConfiguredModel(StrictModel):
    """A model of any family: the fields of its configuration that matter for memory, under their own names.

    Decimals are quoted. The fields are read by the same parser that reads a pasted configuration.
    """

    name: Text
    hub_id: HubId
    hub_aliases: list[HubId] = Field(description="Checkpoints with exactly the same facts.")
    config: dict[Text, JsonValue]
    parameters: Count
    vision_parameters: Count | None = Field(
        default=None, description="Parameters of the vision encoder with its projector, for multimodal models."
    )
    source: ModelSource
    checked: date | None = Field(default=None, description="The file's own date when left out.")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        found = Architecture.from_hf_config(configuration_of({"config": self.config}))
        if self.parameters != found.parameters:
            raise ValueError(f"the shape gives {found.parameters} parameters, not {self.parameters}")
        encoder = None if found.vision is None else found.vision.parameters
        if self.vision_parameters != encoder:
            raise ValueError(f"vision_config gives {encoder} parameters, not {self.vision_parameters}")
        return self


class ModelsFile(StrictModel):
    """The whole of one family's file."""

    family: Text
    checked: date
    models: dict[Identifier, Model | ConfiguredModel]

    def generated(self) -> dict[str, Json]:
        """The file as the package carries it: family and date written into every model."""
        models: dict[str, Json] = {}
        for model_id, model in self.models.items():
            facts: dict[str, Json] = model.model_dump(mode="json")
            if facts.get("vision_parameters", 0) is None:
                del facts["vision_parameters"]
            facts |= {"family": self.family, "checked": (model.checked or self.checked).isoformat()}
            models[model_id] = facts
        return {"family": self.family, "checked": self.checked.isoformat(), "models": models}
