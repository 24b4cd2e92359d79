"""What the method page prints: releases with the standing of their sources, assumptions, and the input table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from enginemem import dataset
from enginemem.comparison import runtime_range
from enginemem.derivation import Standing
from enginemem.link import MOST_FRAGMENT
from enginemem.release import PINNED, load_release
from enginemem.render import figures
from enginemem.render.markup import escape, title
from enginemem.scenario import PLAN_INPUTS
from enginemem.units import GB, GIB, gb, gib

_STANDINGS: tuple[Standing, ...] = ("measured", "source", "log", "unverified")


class MethodFacts(NamedTuple):
    """Fragments and figures of the method page."""

    releases: str
    inputs: str
    runtime_low: str
    runtime_high: str
    runtime_note: str
    ten_gb_in_gib: str
    ten_gib_in_gb: str
    most_fragment: str


def method_facts() -> MethodFacts:
    """Everything that the page prints from data."""
    low, high = runtime_range()
    runtime: Mapping[str, Any] = dataset.read("assumptions.json")["runtime"]
    return MethodFacts(
        releases=_releases(),
        inputs=_inputs(),
        runtime_low=figures.quantity(low),
        runtime_high=figures.quantity(high),
        runtime_note=runtime["note"],
        ten_gb_in_gib=gib(10 * GB),
        ten_gib_in_gb=gb(10 * GIB),
        most_fragment=f"{MOST_FRAGMENT:,}",
    )


def _releases() -> str:
    rows = []
    for column in PINNED:
        release = load_release(column)
        counts = Counter([source.standing for source in release.sources.values()])
        around = sum([source.kind == "bracketed" for source in release.sources.values()])
        cells = "".join([f"<td>{counts[standing]}</td>" for standing in _STANDINGS])
        rows.append(
            f'<tr><th scope="row">{title(column)}</th>{cells}<td>{around}</td>'
            f"<td>{escape(release.records['checked'])}</td></tr>"
        )
    head = "".join([f'<th scope="col">{name}</th>' for name in (*_STANDINGS, "read around the tag", "checked")])
    return (
        '<table class="em-table"><caption class="em-hidden">Pinned releases and the standing of their sources</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _inputs() -> str:
    rows = []
    for field in PLAN_INPUTS:
        flag = field.flag or f"--set {field.key}="
        assumed = " An assumption." if field.assumption else ""
        rows.append(
            f'<tr><th scope="row"><code>{escape(field.key)}</code></th><td class="em-text"><code>{escape(flag)}</code></td>'
            f'<td class="em-text"><code>{escape(field.default)}</code></td>'
            f'<td class="em-text">{escape(field.help)}{assumed}</td></tr>'
        )
    heads = ("key", "flag", "default", "what it is")
    head = "".join([f'<th scope="col" class="em-text">{name}</th>' for name in heads])
    return (
        '<table class="em-table em-inputs"><caption class="em-hidden">Inputs</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
