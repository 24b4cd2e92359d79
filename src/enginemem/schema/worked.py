"""Schema of ``data/worked.yaml``: the published worked comparisons, their inputs and every figure they print."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from enginemem.schema.base import Identifier, Json, StrictModel, Text
from enginemem.schema.quantities import DecimalText

CaseId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


class WorkedSource(StrictModel):
    """Where the comparisons were published."""

    title: Text
    note: Text


class WorkedCase(StrictModel):
    """One comparison: the scenario's inputs that it sets and the figures of each column."""

    title: Text
    question: Text
    inputs: dict[Name, str | int]
    kv_bytes_per_token: Count | None = None
    mean_context_tokens: Count | None = None
    prefill_ms: DecimalText
    printed: list[Name] = Field(default=[], description="The figures that the published page prints for every column.")
    engines: dict[Identifier, dict[Name, int | str | bool]]

    @model_validator(mode="after")
    def _has_what_is_printed(self) -> Self:
        for column, figures in self.engines.items():
            missing = [name for name in self.printed if name not in figures]
            if missing:
                raise ValueError(f"{column} lacks {', '.join(missing)}, which the page prints")
        return self


class WorkedFile(StrictModel):
    """The whole of ``data/worked.yaml``."""

    checked: date
    source: WorkedSource
    cases: dict[CaseId, WorkedCase]

    def generated(self) -> dict[str, Json]:
        """The file as the package carries it."""
        facts: dict[str, Json] = self.model_dump(mode="json")
        return facts
