"""The GPUs of data/hardware.yaml against the reference values, and the traps of public hardware tables."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import ValidationError

from enginemem.schema import HardwareFile
from enginemem.schema.hardware import MeasuredRecord, MemoryRecord, Part, PeakRecord, ValueRecord

ROOT = Path(__file__).resolve().parents[2]
VECTORS: dict[str, Any] = json.loads((ROOT / "tests/vectors/hardware.json").read_text())["parts"]
HARDWARE = HardwareFile.model_validate(yaml.safe_load((ROOT / "data/hardware.yaml").read_text(encoding="utf-8")))
PARTS = HARDWARE.parts
MIB = 2**20
UNITS = {
    "cuda_total": ("cuda_total_mib", MIB),
    "nvidia_smi_total": ("nvidia_smi_mib", MIB),
    "bf16_dense": ("bf16_dense_tflop_per_s", 10**12),
    "fp16_dense": ("fp16_dense_tflop_per_s", 10**12),
    "fp8_dense": ("fp8_dense_tflop_per_s", 10**12),
    "fp4_dense": ("fp4_dense_tflop_per_s", 10**12),
    "memory_bandwidth": ("memory_bandwidth_gb_per_s", 10**9),
    "measured_copy_bandwidth": ("measured_copy_bandwidth_gb_per_s", 10**9),
}
# The worked comparison needs the literal figures, not the rounded or the newest ones.
LITERAL = {("h100-sxm", "cuda_total"), ("h100-sxm", "bf16_dense"), ("h100-sxm", "fp8_dense")}


def exact(record: ValueRecord | None) -> Fraction | None:
    return None if record is None or record.value is None else Fraction(type(record).parse(record.value))


def observed(record: ValueRecord) -> list[Fraction]:
    return [Fraction(type(record).parse(text)) for text in record.observed]


def test_every_part_of_the_reference_is_there_and_no_other() -> None:
    assert PARTS.keys() == VECTORS.keys()
    for part_id, part in PARTS.items():
        expected = VECTORS[part_id]
        assert (part.name, part.vendor, part.compute_capability) == (
            expected["name"],
            expected["vendor"],
            expected["compute_capability"],
        )


@pytest.mark.parametrize("part_id", VECTORS)
def test_every_value_equals_the_reference_in_its_unit(part_id: str) -> None:
    for key, (vector_key, unit) in UNITS.items():
        expected = VECTORS[part_id].get(vector_key, {"value": None})
        value = exact(PARTS[part_id].records().get(key))
        if expected["value"] is None:
            assert value is None, f"{key} is known here only"
            continue
        assert value is not None, f"{key} is missing"
        if (part_id, key) in LITERAL:
            continue
        if unit != MIB:
            assert value / unit == Fraction(str(expected["value"])), key
        elif "bytes_exact" in expected:
            assert value == expected["bytes_exact"], key
        else:
            # A total printed in GiB with two decimals is kept as printed; the reference rounds it to MiB.
            assert round(value / unit) == expected["value"], key


@pytest.mark.parametrize("part_id", VECTORS)
def test_observed_values_of_the_reference_are_kept(part_id: str) -> None:
    expected = VECTORS[part_id]["cuda_total_mib"]
    seen = observed(PARTS[part_id].cuda_total)
    assert {Fraction(value) * MIB for value in expected.get("observed", [])} <= set(seen)
    assert {Fraction(str(value)) * 2**30 for value in expected.get("observed_gib", [])} <= set(seen)


def test_h100_sxm_is_the_literal_of_the_worked_comparison_beside_the_printed_totals() -> None:
    part = PARTS["h100-sxm"]
    cuda = exact(part.cuda_total)
    assert cuda == Fraction("79.18") * 2**30
    totals = observed(part.cuda_total)
    assert VECTORS["h100-sxm"]["cuda_total_mib"]["value"] * MIB in totals
    # The printed totals agree with the literal to two decimals of a GiB, cut or rounded: less than 0.02 GiB away.
    assert all(0 < total - cuda < Fraction("0.02") * 2**30 for total in totals)
    assert part.cuda_total.note is not None
    for key, rounded in (("bf16_dense", 989), ("fp8_dense", 1978)):
        peak = exact(part.records()[key])
        assert peak is not None
        assert int(peak / 10**12) == rounded


def test_no_dense_peak_exceeds_half_of_a_known_sparse_figure() -> None:
    compared = []
    for part_id, part in PARTS.items():
        for key in ("bf16", "fp8", "fp4"):
            dense, sparse = exact(getattr(part, f"{key}_dense")), exact(getattr(part, f"{key}_sparse"))
            if dense is not None and sparse is not None:
                compared.append((part_id, key))
                assert dense <= sparse / 2, f"{part_id} {key}: a sparse figure passes as dense"
    assert {("h100-sxm", "bf16"), ("h100-sxm", "fp8"), ("rtx-pro-6000-server", "fp4")} <= set(compared)


def test_nothing_nominal_passes_as_measured() -> None:
    for part in PARTS.values():
        for key, record in part.records().items():
            if record.value is not None:
                assert (record.standing == "measured") == key.startswith("measured_")


def test_no_nvidia_smi_total_lies_beyond_the_bound_above_its_cuda_total() -> None:
    bound = Fraction(HARDWARE.smi_over_cuda_bound)
    ratios = {}
    for part_id, part in PARTS.items():
        cuda, smi = exact(part.cuda_total), exact(part.nvidia_smi_total)
        if cuda is not None and smi is not None:
            ratios[part_id] = smi / min([cuda, *observed(part.cuda_total)])
    assert len(ratios) > 10
    assert all(1 < ratio < bound for ratio in ratios.values())
    assert max(ratios, key=lambda part_id: ratios[part_id]) == "l4"


def test_the_device_names_single_out_the_a100() -> None:
    # vLLM asks whether the lower-case device name contains "a100".
    assert {part_id for part_id, part in PARTS.items() if "a100" in part.device_name.lower()} == {
        part_id for part_id in PARTS if part_id.startswith("a100-")
    }
    names = [part.device_name for part in PARTS.values()]
    assert len(names) == len(set(names))


def test_every_value_has_its_source_and_every_null_its_reason() -> None:
    for part in PARTS.values():
        for record in part.records().values():
            assert record.note if record.value is None else record.source


def test_a_peak_cannot_be_declared_measured() -> None:
    with pytest.raises(ValidationError, match="standing"):
        PeakRecord.model_validate(
            {"value": "1,979 TFLOP/s", "source": "a sheet", "standing": "measured", "confidence": "high"}
        )
    assert get_args(get_args(MeasuredRecord.model_fields["standing"].annotation)[0]) == ("measured",)


@pytest.mark.parametrize("value", ["80", "80 Gb", "80 GB/s", "", "about 80 GB"])
def test_a_total_without_a_byte_unit_is_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        MemoryRecord.model_validate({"value": value, "source": "a log", "standing": "printed", "confidence": "high"})


def test_a_float_is_refused() -> None:
    facts = {"value": 79.18, "source": "a log", "standing": "printed", "confidence": "high"}
    with pytest.raises(ValidationError, match="string"):
        MemoryRecord.model_validate(facts)


def test_an_unknown_key_is_refused() -> None:
    facts = PARTS["t4"].model_dump()
    assert Part.model_validate(facts)
    with pytest.raises(ValidationError, match="Extra inputs"):
        Part.model_validate(facts | {"bf16": "65 TFLOP/s"})
