"""The memory of one GPU under each engine, drawn to one common scale, with its figures beneath."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from enginemem.comparison import Comparison
from enginemem.memory_map import MemoryMap, common_scale, memory_maps
from enginemem.release import load_release
from enginemem.render import figures
from enginemem.render.markup import escape, figure, name
from enginemem.units import GB, Exact

_HATCH = (
    '<svg class="em-defs" width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="em-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0v5" class="em-hatch"/></pattern></defs></svg>'
)
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def percent(value: Exact, scale: Exact) -> str:
    """A share of the scale as SVG takes it, to a thousandth of a percent; whole bytes are exact enough for that."""
    whole, base = int(value), int(scale)
    thousandths = (200_000 * whole + base) // (2 * base)
    return f"{thousandths // 1000}.{thousandths % 1000:03d}%"


def bars(comparison: Comparison) -> str:
    """All bars and their common axis; a sentence where no engine has one."""
    maps = memory_maps(comparison)
    if not maps:
        return '<p class="em-small">No bar: the GPU’s CUDA total or the model’s weights are not known.</p>'
    scale = common_scale(maps)
    rows = "".join([_row(shares, scale) for shares in maps.values()])
    return f'{_HATCH}<div class="em-bars">{rows}{_axis(scale)}</div>'


@lru_cache(maxsize=64)
def _row(shares: MemoryMap, scale: Exact) -> str:
    at: Exact = 0
    rects: list[str] = []
    items: list[str] = []
    said: list[str] = []
    for part in shares.parts:
        hatched = ' fill="url(#em-hatch)"' if part.kind == "unused" else ""
        x, width = percent(at, scale), percent(part.bytes, scale)
        rects.append(f'<rect class="em-p-{part.kind}" x="{x}" width="{width}" height="22"{hatched}/>')
        at += part.bytes
        text, label = figures.gigabytes(part.bytes), escape(part.label)
        value = figure(f"{shares.engine}.bar.{part.kind}", text)
        items.append(f'<li class="em-p-{part.kind}"><span class="em-part">{label}</span> {value}</li>')
        said.append(f"{label} {text}")
    end = percent(shares.total, scale)
    spoken = f"{escape(load_release(shares.engine).name)}: {', '.join(said)}"
    over = ""
    if shares.over:
        over = f'<p class="em-over">{figures.gigabytes(shares.over)} more than the GPU has</p>'
    return (
        f'<div class="em-bar em-{shares.engine}"><h3>{name(shares.engine)}</h3>'
        f'<svg width="100%" height="22" role="img" aria-label="{spoken}">{"".join(rects)}'
        f'<line class="em-total" x1="{end}" x2="{end}" y2="22"/></svg><ul>{"".join(items)}</ul>{over}</div>'
    )


@lru_cache(maxsize=16)
def _axis(scale: Exact) -> str:
    span = scale / Fraction(GB)
    step = next((tick for tick in _TICKS if span / tick <= 6), _TICKS[-1])
    marks = []
    for tick in range(0, int(span) + 1, step):
        x = percent(tick * GB, scale)
        last = tick + step > span
        anchor = "start" if tick == 0 else "end" if last and span - tick < Fraction(step, 6) else "middle"
        text = f"{tick} GB" if last else str(tick)
        marks.append(f'<line x1="{x}" x2="{x}" y2="4"/><text x="{x}" y="15" text-anchor="{anchor}">{text}</text>')
    return f'<svg class="em-axis" width="100%" height="18" aria-hidden="true">{"".join(marks)}</svg>'
