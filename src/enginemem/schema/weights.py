"""Schema of ``data/weights.yaml``: sizes of weights that files and start-up logs state."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from enginemem.schema.base import Identifier, Json, StrictModel, Text
from enginemem.schema.quantities import BytesText, DecimalText, base_units, parse_bytes

Record = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$")]
"""The id of a log in the collection of printed start-up logs."""


class StatedRow(StrictModel):
    """One stated size: of a checkpoint's files, or of what an engine loaded on one GPU.

    `quantization` is the checkpoint's quantization_config where it is not the preset's own; `miss` says why the size
    stays outside of the limit.
    """

    model: Text
    preset: Identifier
    quantization: dict[str, JsonValue] | None = None
    of: Literal["checkpoint", "loaded"]
    engine: Literal["vllm", "sglang"] | None = None
    tp: Literal[1, 2, 4, 8] = 1
    stated: BytesText
    record: Record | None
    miss: Text | None = None

    def generated(self) -> dict[str, Json]:
        """The row with the stated bytes, and half a unit of the last printed digit."""
        facts: dict[str, Json] = self.model_dump(mode="json")
        number, unit = self.stated.split()
        places = len(number.partition(".")[2])
        half = Fraction(parse_bytes(f"1 {unit}")) / (2 * 10**places) if places else Fraction(0)
        return facts | {"bytes": base_units(parse_bytes(self.stated)), "precision": base_units(half)}


class Unmatched(StrictModel):
    """A stated size that nothing here can be held against, and why."""

    model: Text
    record: Record
    reason: Text


class Limits(StrictModel):
    """The largest difference as a share of the stated size, for 16-bit and for quantised weights."""

    plain: DecimalText
    quantised: DecimalText


class WeightsFile(StrictModel):
    """The whole of ``data/weights.yaml``."""

    checked: date
    limits: Limits
    sglang_rotary_bytes: Annotated[int, Field(ge=1)]
    rows: list[StatedRow]
    unmatched: list[Unmatched]

    def generated(self) -> dict[str, Json]:
        """The file as the package carries it."""
        facts: dict[str, Json] = self.model_dump(mode="json", exclude={"rows"})
        return facts | {"rows": [row.generated() for row in self.rows]}
