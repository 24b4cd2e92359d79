"""GPU facts from `data/hardware.yaml`: two memory totals, peaks, bandwidth; null where nobody stated a value."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from enginemem import dataset
from enginemem.units import Exact


class Gpu(NamedTuple):
    """One part.

    `cuda_total` is what cudaMemGetInfo reports and `smi_total` what nvidia-smi prints, both in bytes; peaks are dense
    FLOP/s by element type, `bandwidth` is the vendor's peak in B/s. None means that no source was found.
    """

    id: str
    name: str
    device_name: str
    vendor: str
    compute_capability: tuple[int, int] | None
    cuda_total: Exact | None
    smi_total: Exact | None
    bandwidth: int | None
    dense_peaks: Mapping[str, int | None]
    records: Mapping[str, Any]


@cache
def _document() -> Mapping[str, Any]:
    return dataset.read("hardware.json")


def gpu_ids() -> tuple[str, ...]:
    """The ids of all parts, in the order of the data file's sorted keys."""
    return tuple(_document()["parts"])


def smi_over_cuda_bound() -> Fraction:
    """No known part's nvidia-smi total exceeds its CUDA total by more than this ratio."""
    return Fraction(_document()["smi_over_cuda_bound"])


def _integer(value: Exact | None) -> int | None:
    return None if value is None else int(value)


@cache
def load_gpu(gpu_id: str) -> Gpu:
    """The part `gpu_id`; raises KeyError for an unknown id."""
    part = _document()["parts"][gpu_id]

    def value(key: str) -> Exact | None:
        record = part.get(key)
        return None if record is None else dataset.exact(record["value"])

    capability = part["compute_capability"]
    major_minor = None if capability is None else tuple(int(digit) for digit in capability.split("."))
    return Gpu(
        id=gpu_id,
        name=part["name"],
        device_name=part["device_name"],
        vendor=part["vendor"],
        compute_capability=None if major_minor is None else (major_minor[0], major_minor[1]),
        cuda_total=value("cuda_total"),
        smi_total=value("nvidia_smi_total"),
        bandwidth=_integer(value("memory_bandwidth")),
        dense_peaks={kind: _integer(value(f"{kind}_dense")) for kind in ("bf16", "fp16", "fp8", "fp4")},
        records=part,
    )
