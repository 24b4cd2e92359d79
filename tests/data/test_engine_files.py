"""The format of the engine release files: units, sources, and releases that list differences only."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from enginemem.schema import EngineFile, merged_release
from enginemem.schema.engines import EngineValue
from enginemem.schema.quantities import base_units, parse_flops, parse_rate

BASE: dict[str, Any] = {
    "engine": "vllm",
    "name": "vLLM",
    "release": "1.0.0",
    "source_url": "https://example.org/v1.0.0/",
    "checked": datetime.date(2026, 11, 30),
    "values": {
        "utilization": {"value": "0.92", "unit": "fraction", "source": "cache"},
        "reserve": {"value": "512 MiB", "unit": "bytes", "source": "cache"},
        "sizes": {"value": [1, 2, 4], "unit": "requests", "source": "graphs"},
    },
    "tables": {"defaults": {"source": "cache", "rows": [{"min_gib": 160, "budget": 16384}]}},
    "sources": {
        "cache": {"kind": "code", "file": "a/cache.py", "symbol": "Cache", "lines": [1, 9], "standing": "source"},
        "graphs": {"kind": "document", "title": "Graphs", "standing": "unverified"},
    },
    "options": {"utilization": "--utilization"},
}


def release(**changes: Any) -> EngineFile:
    return EngineFile.model_validate(BASE | changes)


def value(written: Any, unit: str) -> Any:
    return EngineValue.model_validate({"value": written, "unit": unit, "source": "cache"}).normalised()


def test_values_are_carried_in_base_units() -> None:
    carried = release().generated()
    assert carried["values"] == {
        "utilization": {"value": "0.92", "unit": "fraction", "source": "cache", "note": None},
        "reserve": {"value": 512 * 2**20, "unit": "bytes", "source": "cache", "note": None, "text": "512 MiB"},
        "sizes": {"value": [1, 2, 4], "unit": "requests", "source": "graphs", "note": None},
    }
    assert carried["extends"] is None


def test_a_source_without_a_date_has_the_date_of_its_file() -> None:
    sources: Any = release().generated()["sources"]
    assert sources["cache"]["date"] == "2026-11-30"
    assert sources["cache"]["lines"] == [1, 9]


@pytest.mark.parametrize(
    ("written", "unit", "expected"),
    [
        ("79.18 GiB", "bytes", "2125471940608/25"),
        (["1 KiB", "1 kB"], "bytes", [1024, 1000]),
        (8192, "bytes", 8192),
        ("3.35 TB/s", "B/s", 3_350_000_000_000),
        (True, "flag", True),
        ("max_utilization", "name", "max_utilization"),
        (["auto", "fp8"], "names", ["auto", "fp8"]),
    ],
)
def test_a_value_is_normalised_by_its_unit(written: Any, unit: str, expected: Any) -> None:
    assert value(written, unit) == expected


@pytest.mark.parametrize(
    ("written", "unit"),
    [(0.92, "fraction"), (1, "fraction"), ("512", "bytes"), ("512 MiB", "MiB"), (True, "bytes"), (None, "tokens")],
)
def test_a_value_that_does_not_fit_its_unit_is_refused(written: Any, unit: str) -> None:
    with pytest.raises(ValidationError):
        value(written, unit)


def test_a_source_that_is_not_listed_is_refused() -> None:
    with pytest.raises(ValidationError, match="sources that the file does not list: defaults -> lost"):
        release(tables={"defaults": {"source": "lost", "rows": [{"a": 1}]}})


def test_rows_with_different_columns_are_refused() -> None:
    with pytest.raises(ValidationError, match="same columns"):
        release(tables={"defaults": {"source": "cache", "rows": [{"a": 1}, {"b": 1}]}})


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "code", "standing": "source"},
        {"kind": "document", "standing": "source"},
        {"kind": "code", "file": "a.py", "lines": [9, 1], "standing": "source"},
        {"kind": "code", "file": "a.py", "standing": "guessed"},
    ],
)
def test_a_source_that_leads_nowhere_is_refused(source: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        release(sources=BASE["sources"] | {"more": source})


def differences(**changes: Any) -> EngineFile:
    facts = {"release": "0.9.0", "extends": "1.0.0", "values": {}, "tables": {}, "sources": {}, "options": {}}
    return release(**(facts | changes))


def test_a_release_that_extends_another_replaces_and_removes_by_name() -> None:
    older = differences(
        values={"utilization": {"value": "0.9", "unit": "fraction", "source": "cache"}, "sizes": None},
        options={"sizes": "--sizes"},
    )
    merged = merged_release(older, release())
    assert merged.release == "0.9.0"
    assert merged.values.keys() == {"utilization", "reserve"}
    changed = merged.values["utilization"]
    assert changed is not None
    assert changed.value == "0.9"
    assert merged.tables.keys() == {"defaults"}
    assert merged.options == {"utilization": "--utilization", "sizes": "--sizes"}
    assert merged.generated(extended="1.0.0")["extends"] == "1.0.0"


def test_only_an_extending_release_may_remove() -> None:
    with pytest.raises(ValidationError, match="only a release that extends another may remove reserve"):
        release(values=BASE["values"] | {"reserve": None})
    with pytest.raises(ValueError, match="nothing to remove"):
        merged_release(differences(values={"absent": None}), release())


def test_a_merge_that_loses_a_source_is_refused() -> None:
    with pytest.raises(ValueError, match="sizes -> graphs"):
        merged_release(differences(sources={"graphs": None}), release())


def test_a_release_extends_only_the_one_that_it_names() -> None:
    with pytest.raises(ValueError, match="does not extend"):
        merged_release(differences(extends="0.8.0"), release())


@pytest.mark.parametrize(
    ("text", "expected"), [("3.35 TB/s", 3_350_000_000_000), ("2,039 GB/s", 2_039 * 10**9), ("1 GiB/s", 2**30)]
)
def test_rates_are_exact(text: str, expected: int) -> None:
    assert parse_rate(text) == expected


def test_peaks_are_exact() -> None:
    assert parse_flops("1,978.9 TFLOP/s") == 1_978_900_000_000_000
    assert base_units(parse_flops("0.5 FLOP/s")) == "1/2"
    assert base_units(Fraction(4, 2)) == 2


@pytest.mark.parametrize("text", ["3.35", "3.35TB/s", "3.35 TB", "1,00 GB/s", "-1 GB/s", "989 TFLOPS", "1e3 GB/s"])
def test_a_text_that_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number with a unit"):
        parse_rate(text)
