"""Schema of ``data/hardware.yaml``: GPUs, each value with its source, its date and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from enginemem.schema.base import Identifier, Json, StrictModel, Text
from enginemem.schema.quantities import (
    BytesText,
    DecimalText,
    FlopsText,
    RateText,
    base_units,
    parse_bytes,
    parse_flops,
    parse_rate,
)
from enginemem.units import Exact

Standing = Literal["printed", "vendor_peak", "secondary", "measured"]
"""A printout of the part, the vendor's nominal figure, a second-hand figure, a measurement."""


class ValueRecord(StrictModel):
    """One value of a part and what stands behind it; a null value says in its note why it is not known."""

    parse: ClassVar[Callable[[str], Exact]]

    value: str | None
    source: Text | None = None
    checked: date | None = Field(default=None, description="The file's own date when left out.")
    standing: Standing | None = None
    confidence: Literal["high", "medium"] | None = None
    observed: list[str] = Field(default=[], description="Other printed values of the same part.")
    note: Text | None = None

    @model_validator(mode="after")
    def _stands_on_something(self) -> Self:
        if self.value is None:
            if self.note is None:
                raise ValueError("a null value needs a note that says why")
            if self.standing is not None or self.confidence is not None or self.observed:
                raise ValueError("a null value has no standing, no confidence and nothing observed")
        elif self.source is None or self.standing is None or self.confidence is None:
            raise ValueError("a value needs its source, standing and confidence")
        return self

    def generated(self, checked: date) -> dict[str, Json]:
        """The record as the package carries it: base units, the original text beside them, every key present."""
        parse = type(self).parse
        return {
            "value": None if self.value is None else base_units(parse(self.value)),
            "text": self.value,
            "source": self.source,
            "checked": (self.checked or checked).isoformat(),
            "standing": self.standing,
            "confidence": self.confidence,
            "observed": [{"value": base_units(parse(text)), "text": text} for text in self.observed],
            "note": self.note,
        }


class MemoryRecord(ValueRecord):
    """A memory total in bytes, as a driver or a tool prints it."""

    parse: ClassVar[Callable[[str], Exact]] = staticmethod(parse_bytes)

    value: BytesText | None
    observed: list[BytesText] = Field(default=[])
    standing: Literal["printed", "secondary"] | None = None


class PeakRecord(ValueRecord):
    """A nominal compute peak in FLOP/s. Never a measurement: nobody measured it."""

    parse: ClassVar[Callable[[str], Exact]] = staticmethod(parse_flops)

    value: FlopsText | None
    observed: list[FlopsText] = Field(default=[])
    standing: Literal["vendor_peak", "secondary"] | None = None


class BandwidthRecord(ValueRecord):
    """A nominal memory bandwidth in B/s. Never a measurement: see ``MeasuredRecord``."""

    parse: ClassVar[Callable[[str], Exact]] = staticmethod(parse_rate)

    value: RateText | None
    observed: list[RateText] = Field(default=[])
    standing: Literal["vendor_peak", "secondary"] | None = None


class MeasuredRecord(ValueRecord):
    """A bandwidth in B/s that somebody measured."""

    parse: ClassVar[Callable[[str], Exact]] = staticmethod(parse_rate)

    value: RateText | None
    observed: list[RateText] = Field(default=[])
    standing: Literal["measured"] | None = None


_NOT_LISTED = PeakRecord(value=None, note="no figure found")


class Part(StrictModel):
    """One GPU. Totals are of one GPU; peaks are dense unless the key says sparse."""

    name: Text
    device_name: Text = Field(description="The device name that CUDA and NVML print.")
    vendor: Literal["NVIDIA", "AMD"]
    compute_capability: Annotated[str, StringConstraints(pattern=r"^\d{1,2}\.\d$")] | None
    cuda_total: MemoryRecord
    nvidia_smi_total: MemoryRecord
    bf16_dense: PeakRecord
    bf16_sparse: PeakRecord | None = None
    fp16_dense: PeakRecord = _NOT_LISTED
    fp8_dense: PeakRecord
    fp8_sparse: PeakRecord | None = None
    fp4_dense: PeakRecord = _NOT_LISTED
    fp4_sparse: PeakRecord | None = None
    memory_bandwidth: BandwidthRecord
    measured_copy_bandwidth: MeasuredRecord | None = None

    def records(self) -> dict[str, ValueRecord]:
        """The value records of the part by key, without the optional ones that it lacks."""
        return {key: value for key in type(self).model_fields if isinstance(value := getattr(self, key), ValueRecord)}

    def generated(self, checked: date) -> dict[str, Json]:
        """The part as the package carries it."""
        facts: dict[str, Json] = {
            "name": self.name,
            "device_name": self.device_name,
            "vendor": self.vendor,
            "compute_capability": self.compute_capability,
        }
        return facts | {key: record.generated(checked) for key, record in self.records().items()}


class HardwareFile(StrictModel):
    """The whole of ``data/hardware.yaml``."""

    checked: date
    smi_over_cuda_bound: DecimalText = Field(description="No known nvidia-smi total exceeds its CUDA total by more.")
    smi_over_cuda_note: Text
    parts: dict[Identifier, Part]

    def generated(self) -> dict[str, Json]:
        """The file as the package carries it."""
        return {
            "checked": self.checked.isoformat(),
            "smi_over_cuda_bound": self.smi_over_cuda_bound,
            "smi_over_cuda_note": self.smi_over_cuda_note,
            "parts": {part_id: part.generated(self.checked) for part_id, part in self.parts.items()},
        }
