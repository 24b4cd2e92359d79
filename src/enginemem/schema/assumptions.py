"""Schema of ``data/assumptions.yaml``: the evidenced range of an input that no formula gives."""

from __future__ import annotations

from datetime import date
from typing import Self

from pydantic import model_validator

from enginemem.schema.base import Json, StrictModel, Text
from enginemem.schema.quantities import BytesText, parse_bytes


class EvidencedRange(StrictModel):
    """The lowest and the highest value that has been seen, and where."""

    low: BytesText
    high: BytesText
    note: Text

    @model_validator(mode="after")
    def _low_is_lower(self) -> Self:
        if parse_bytes(self.low) > parse_bytes(self.high):
            raise ValueError(f"{self.low} is more than {self.high}")
        return self


class AssumptionsFile(StrictModel):
    """The whole of ``data/assumptions.yaml``."""

    checked: date
    runtime: EvidencedRange

    def generated(self) -> dict[str, Json]:
        """The file as the package carries it; the ends of a range stay texts, which the page shows as written."""
        facts: dict[str, Json] = self.model_dump(mode="json")
        return facts
