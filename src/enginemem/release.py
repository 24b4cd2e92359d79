"""A pinned engine release: constants, defaults, tables and sources from `data/engines/<engine>/<release>.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from enginemem import dataset
from enginemem.derivation import Source
from enginemem.units import Exact

PINNED: Mapping[str, str] = {"vllm": "0.32.0", "sglang": "0.5.22", "tensorrt-llm": "1.2.1"}
"""The release that a column without an explicit one stands for."""


class EngineRelease(NamedTuple):
    """The facts of one release. `values` are ready for arithmetic: ints, exact quantities, floats for fractions."""

    engine: str
    name: str
    release: str
    source_url: str
    values: Mapping[str, Any]
    tables: Mapping[str, tuple[Mapping[str, Any], ...]]
    sources: Mapping[str, Source]
    options: Mapping[str, str]
    records: Mapping[str, Any]

    def integer(self, name: str) -> int:
        """A whole number among `values` (tokens, requests, bytes); raises KeyError for an unknown name."""
        value: int = self.values[name]
        return value

    def number(self, name: str) -> float:
        """A fraction among `values`, as the double that the engine's own source literal is."""
        value: float = self.values[name]
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers among `values`."""
        value: tuple[int, ...] = self.values[name]
        return value


def _ready(record: Mapping[str, Any]) -> int | float | str | bool | Exact | tuple[Any, ...] | None:
    value = record["value"]
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str) and record["unit"] == "fraction":
        return float(value)
    if isinstance(value, str) and record["unit"] == "bytes":
        return dataset.exact(value)
    ready: int | str | bool | None = value
    return ready


def _source(release: str, record: Mapping[str, Any]) -> Source:
    lines = record["lines"]
    return Source(
        kind=record["kind"],
        release=release,
        file=record["file"],
        symbol=record["symbol"],
        lines=None if lines is None else (lines[0], lines[1]),
        title=record["title"],
        url=record["url"],
        date=record["date"],
        standing=record["standing"],
    )


@cache
def load_release(engine: str, release: str | None = None) -> EngineRelease:
    """A release of `engine` (`vllm`, `sglang`, `tensorrt-llm`), the pinned one by default.

    Raises KeyError for an unknown engine, FileNotFoundError for a release without data.
    """
    version = release or PINNED[engine]
    document = dataset.read("engines", engine, f"{version}.json")
    return EngineRelease(
        engine=engine,
        name=document["name"],
        release=version,
        source_url=document["source_url"],
        values={name: _ready(record) for name, record in document["values"].items()},
        tables={name: tuple(table["rows"]) for name, table in document["tables"].items()},
        sources={key: _source(version, record) for key, record in document["sources"].items()},
        options=document["options"],
        records=document,
    )
