"""A plan's derivation as a ledger: each step with its numbers substituted, its value and its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from enginemem.derivation import Source, Step
from enginemem.release import EngineRelease
from enginemem.render import figures

# Not a keyword argument's name: `limit=limit` keeps its left side.
_NAME = re.compile(r"\b[A-Za-z_]\w*\b(?!=[^=])")


class Line(NamedTuple):
    """One ledger line, ready to print."""

    id: str
    label: str
    sign: str
    symbols: str
    substituted: str
    value: str
    note: str | None
    sources: tuple[str, ...]


_SIGNS = {"add": "+", "subtract": "-", "limit": "<=", "result": "="}


def substituted(step: Step) -> str:
    """The step's expression with the operands' values in place of their names."""

    def value(match: re.Match[str]) -> str:
        found = step.operands.get(match[0])
        return match[0] if found is None else figures.operand(*found, name=match[0])

    return _NAME.sub(value, step.expression).replace(" * ", " x ")


def source_text(source: Source) -> str:
    """A source in one line: file, lines, symbol and standing."""
    place = source.file or source.title or source.url or ""
    lines = "" if source.lines is None else f":{source.lines[0]}-{source.lines[1]}"
    symbol = f" {source.symbol}" if source.symbol else ""
    bracketed = ", read around the tag" if source.kind == "bracketed" else ""
    return f"{place}{lines}{symbol} [{source.standing}{bracketed}]"


def source_url(source: Source, release: EngineRelease) -> str | None:
    """The address of a source at the pinned tag, with its line range where one is known."""
    if source.url is not None:
        return source.url
    if source.file is None:
        return None
    lines = "" if source.lines is None else f"#L{source.lines[0]}-L{source.lines[1]}"
    return f"{release.source_url}{source.file}{lines}"


def ledger(steps: Iterable[Step]) -> list[Line]:
    """The ledger lines of the steps, in order."""
    return [
        Line(
            id=step.id,
            label=step.label,
            sign=_SIGNS[step.role],
            symbols=step.expression,
            substituted=substituted(step),
            value=figures.figure(step.value, step.unit),
            note=step.note,
            sources=tuple([source_text(source) for source in step.sources]),
        )
        for step in steps
    ]
