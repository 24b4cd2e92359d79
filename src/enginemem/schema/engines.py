"""Schema of ``data/engines/<engine>/<release>.yaml``: the constants, defaults and tables that the rules use.

A release that extends another lists its differences only: an entry replaces the one of the same name, a null entry
removes it. ``merged_release`` writes the whole out, and the merged release must name every source that it uses.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from enginemem.schema.base import Json, StrictModel, Text
from enginemem.schema.quantities import base_units, parse_bytes, parse_flops, parse_rate
from enginemem.units import parse_decimal

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Release = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)+((rc|a|b|\.post|\.dev)\d+)?$")]
Scalar = int | str | bool | None
_MAPPINGS = ("values", "tables", "sources", "options")
_PARSERS = {"bytes": parse_bytes, "B/s": parse_rate, "FLOP/s": parse_flops}


class EngineSource(StrictModel):
    """Where a fact is read: in the pinned code, in an older and a newer text of it, or in a document."""

    kind: Literal["code", "bracketed", "document"]
    file: Text | None = None
    symbol: Text | None = None
    lines: list[Annotated[int, Field(ge=1)]] | None = Field(default=None, min_length=2, max_length=2)
    title: Text | None = None
    url: Annotated[str, StringConstraints(pattern=r"^https://\S+$")] | None = None
    date: datetime.date | None = Field(default=None, description="The file's checked date when left out.")
    standing: Literal["measured", "source", "log", "unverified"]

    @model_validator(mode="after")
    def _can_be_found(self) -> Self:
        if self.kind != "document" and self.file is None:
            raise ValueError(f"a source of kind {self.kind} names its file")
        if self.kind == "document" and self.title is None and self.url is None:
            raise ValueError("a document has a title or a url")
        if self.lines is not None and self.lines[0] > self.lines[1]:
            raise ValueError(f"lines run backwards: {self.lines}")
        return self


class EngineValue(StrictModel):
    """One constant, default or fact. Quantities are texts with a unit, fractions decimal texts."""

    value: bool | int | str | list[int] | list[str]
    unit: Text
    source: Name
    note: Text | None = None

    @model_validator(mode="after")
    def _fits_its_unit(self) -> Self:
        self.normalised()
        return self

    def normalised(self) -> Json:
        """The value in base units: bytes, B/s and FLOP/s as exact numbers, everything else as written."""
        if isinstance(self.value, list):
            return [self._item(item) for item in self.value]
        return self._item(self.value)

    def _item(self, item: bool | int | str) -> int | str | bool:
        if self.unit == "fraction":
            if not isinstance(item, str):
                raise ValueError(f"a fraction is written as a decimal text, not as {item!r}")
            parse_decimal(item)
            return item
        parse = _PARSERS.get(self.unit)
        if parse is not None:
            if isinstance(item, bool):
                raise ValueError(f"{item!r} is no number of {self.unit}")
            return base_units(parse(item)) if isinstance(item, str) else item
        if isinstance(item, str) and _is_quantity(item):
            raise ValueError(f"{item!r} is a quantity: its unit is bytes, B/s or FLOP/s, not {self.unit}")
        return item

    def generated(self) -> dict[str, Json]:
        """The value as the package carries it; ``text`` holds a quantity as it was written."""
        value, written = self.normalised(), self.value
        facts: dict[str, Json] = {"value": value, "unit": self.unit, "source": self.source, "note": self.note}
        if self.unit in _PARSERS and isinstance(written, str):
            facts["text"] = written
        return facts


class EngineTable(StrictModel):
    """Rows of scalars, all with the same columns, in the order in which the engine tries them."""

    source: Name
    note: Text | None = None
    rows: list[dict[Name, Scalar]] = Field(min_length=1)

    @model_validator(mode="after")
    def _is_rectangular(self) -> Self:
        if any(row.keys() != self.rows[0].keys() for row in self.rows):
            raise ValueError("every row has the same columns")
        return self


class EngineFile(StrictModel):
    """One release file, whole or (when it extends another) only its differences."""

    engine: Literal["vllm", "sglang", "tensorrt-llm"]
    name: Text
    release: Release
    extends: Release | None = None
    released: datetime.date | None = None
    source_url: Annotated[str, StringConstraints(pattern=r"^https://\S+/$")]
    checked: datetime.date
    values: dict[Name, EngineValue | None] = Field(default={})
    tables: dict[Name, EngineTable | None] = Field(default={})
    sources: dict[Name, EngineSource | None] = Field(default={})
    options: dict[Name, Text | None] = Field(default={})

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.extends is not None:
            return self
        for mapping in _MAPPINGS:
            empty = [key for key, entry in getattr(self, mapping).items() if entry is None]
            if empty:
                raise ValueError(f"{mapping}: only a release that extends another may remove {', '.join(empty)}")
        entries = [*self.values.items(), *self.tables.items()]
        lost = [f"{key} -> {entry.source}" for key, entry in entries if entry and entry.source not in self.sources]
        if lost:
            raise ValueError(f"sources that the file does not list: {', '.join(lost)}")
        return self

    def generated(self, *, extended: str | None = None) -> dict[str, Json]:
        """A whole release as the package carries it; ``extended`` is the release that its file started from.

        Raises ValueError for a file that lists only differences.
        """
        if self.extends is not None:
            raise ValueError(f"{self.engine} {self.release} extends {self.extends}: merge it first")
        sources: dict[str, Json] = {}
        for key, source in self.sources.items():
            if source is not None:
                sources[key] = source.model_dump(mode="json") | {"date": (source.date or self.checked).isoformat()}
        return {
            "engine": self.engine,
            "name": self.name,
            "release": self.release,
            "extends": extended,
            "released": None if self.released is None else self.released.isoformat(),
            "source_url": self.source_url,
            "checked": self.checked.isoformat(),
            "values": {key: value.generated() for key, value in self.values.items() if value is not None},
            "tables": {key: table.model_dump(mode="json") for key, table in self.tables.items() if table is not None},
            "sources": sources,
            "options": {key: option for key, option in self.options.items() if option is not None},
        }


def _is_quantity(text: str) -> bool:
    for parse in _PARSERS.values():
        try:
            parse(text)
        except ValueError:
            continue
        return True
    return False


def merged_release(file: EngineFile, base: EngineFile) -> EngineFile:
    """``file`` with everything that it does not mention taken from ``base``, a whole release of the same engine.

    Raises ValueError when ``base`` is not the release that ``file`` extends, when an entry to remove is not there, or
    when the result uses a source that it does not list.
    """
    if (file.engine, file.extends) != (base.engine, base.release):
        raise ValueError(f"{file.engine} {file.release} does not extend {base.engine} {base.release}")
    if base.extends is not None:
        raise ValueError(f"{base.engine} {base.release} is not a whole release")
    facts = dict(file)
    for name in _MAPPINGS:
        changes: Mapping[str, object] = getattr(file, name)
        merged = dict(getattr(base, name))
        for key, entry in changes.items():
            if entry is None and key not in merged:
                raise ValueError(f"{name}.{key}: {base.release} has nothing to remove")
            merged[key] = entry
        facts[name] = {key: entry for key, entry in merged.items() if entry is not None}
    return EngineFile.model_validate(facts | {"extends": None})
