"""Line charts as SVG text. Positions are exact rationals, so every Python draws the same picture to the byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from enginemem.render.markup import escape
from enginemem.units import Exact

WIDTH, HEIGHT = 420, 264
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 108, 24, 44
_LABEL_GAP = 15


class Tick(NamedTuple):
    """A place on an axis and its text."""

    at: Exact
    text: str


class Line(NamedTuple):
    """One engine's line: its column, the text at its end, and its points (None: no plan there)."""

    column: str
    label: str
    points: tuple[tuple[Exact, int | None], ...]


class Chart(NamedTuple):
    """What a chart shows. `position` maps an x value to 0 .. 1 between the ends of the axis."""

    key: str
    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    current: Exact
    position: Callable[[Exact], Fraction]
    band: tuple[Exact, Exact] | None = None


def octave(value: Exact) -> Fraction:
    """A logarithmic axis without logarithms: exact at powers of two, straight in between."""
    whole = max(int(value), 1)
    power = whole.bit_length() - 1
    base = 1 << power
    return power + Fraction(value - base, base)


def doubling(low: Exact, high: Exact) -> Callable[[Exact], Fraction]:
    """The position on an axis on which every doubling has the same length."""
    start, span = octave(low), octave(high) - octave(low)
    return lambda value: (octave(value) - start) / span if span else Fraction(1, 2)


def linear(low: Exact, high: Exact) -> Callable[[Exact], Fraction]:
    """The position on an even axis."""
    span = Fraction(high - low)
    return lambda value: Fraction(value - low) / span if span else Fraction(1, 2)


def nice_step(largest: int, ticks: int = 4) -> int:
    """A step of 1, 2 or 5 times a power of ten that divides 0 .. `largest` into at most `ticks` + 1 parts."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if largest <= factor * power * ticks:
                return factor * power
        power *= 10


def _at(value: Fraction) -> str:
    tenths = round(value * 10)
    whole, rest = divmod(tenths, 10)
    return f"{whole}.{rest}" if rest else str(whole)


def spread(wanted: Sequence[Fraction], gap: int, low: Exact, high: Exact) -> list[Fraction]:
    """Places at least `gap` apart, in the order of the wanted ones and inside low .. high where they fit."""
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    placed: list[Fraction] = [Fraction(0)] * len(wanted)
    below = Fraction(low) - gap
    for index in order:
        below = placed[index] = max(wanted[index], below + gap)
    above = Fraction(high) + gap
    for index in reversed(order):
        above = placed[index] = min(placed[index], above - gap)
    return placed


_MARKS = {
    "vllm": '<circle class="em-dot" cx="{x}" cy="{y}" r="4.5"/>',
    "sglang": '<path class="em-dot" d="M{x} {y}m0-5.5 5 9.5h-10z"/>',
    "tensorrt-llm": '<path class="em-dot" d="M{x} {y}m-4.3-4.3h8.6v8.6h-8.6z"/>',
}


def draw(chart: Chart) -> str:
    """The chart; its lines carry the engines' classes, its colours come from the style sheet."""
    largest = max([count for line in chart.lines for _, count in line.points if count is not None], default=1) or 1
    step = nice_step(largest)
    top = -(-largest // step) * step
    wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def x(value: Exact) -> Fraction:
        return _LEFT + wide * chart.position(value)

    def y(count: Exact) -> Fraction:
        return _TOP + high * (1 - Fraction(count) / top)

    said = f"{chart.title}; the table below has the figures"
    parts = [
        f'<svg class="em-chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(said)}">',
        f'<text class="em-axis-name" x="0" y="11">{escape(chart.y_label)}</text>',
    ]
    if chart.band is not None:
        left, right = x(chart.band[0]), x(chart.band[1])
        parts.append(f'<rect class="em-band" x="{_at(left)}" y="{_TOP}" width="{_at(right - left)}" height="{high}"/>')
    for count in range(0, top + 1, step):
        parts.append(
            f'<line class="em-grid" x1="{_LEFT}" x2="{_LEFT + wide}" y1="{_at(y(count))}" y2="{_at(y(count))}"/>'
        )
        parts.append(f'<text class="em-tick em-end" x="{_LEFT - 6}" y="{_at(y(count) + 4)}">{count:,}</text>')
    for tick in chart.x_ticks:
        place = _at(x(tick.at))
        parts.append(f'<line class="em-grid" x1="{place}" x2="{place}" y1="{_TOP + high}" y2="{_TOP + high + 4}"/>')
        parts.append(f'<text class="em-tick em-mid" x="{place}" y="{_TOP + high + 17}">{escape(tick.text)}</text>')
    parts.append(f'<text class="em-axis-name em-mid" x="{_at(_LEFT + Fraction(wide, 2))}" y="{HEIGHT - 6}">'
                 f"{escape(chart.x_label)}</text>")  # fmt: skip
    now = _at(x(chart.current))
    parts.append(f'<line class="em-now" x1="{now}" x2="{now}" y1="{_TOP}" y2="{_TOP + high}"/>')
    parts += _lines(chart, x, y)
    parts.append("</svg>")
    return "".join(parts)


def _lines(chart: Chart, x: Callable[[Exact], Fraction], y: Callable[[Exact], Fraction]) -> list[str]:
    parts: list[str] = []
    ends: list[tuple[Line, Fraction]] = []
    for line in chart.lines:
        path, drawing, last = [], False, None
        for value, count in line.points:
            if count is None:
                drawing = False
                continue
            path.append(f"{'L' if drawing else 'M'}{_at(x(value))} {_at(y(count))}")
            drawing, last = True, y(count)
        if last is None:
            continue
        parts.append(f'<path class="em-line em-{line.column}" d="{"".join(path)}"/>')
        current = dict(line.points).get(chart.current)
        if current is not None:
            shape = _MARKS[line.column].format(x=_at(x(chart.current)), y=_at(y(current)))
            parts.append(f'<g class="em-{line.column}">{shape}</g>')
        ends.append((line, last))
    places = spread([place for _, place in ends], _LABEL_GAP, _TOP, HEIGHT - _BOTTOM)
    for (line, end), place in zip(ends, places, strict=True):
        start = WIDTH - _RIGHT
        if abs(place - end) > 2:
            parts.append(f'<path class="em-lead" d="M{start} {_at(end)}L{start + 7} {_at(place)}"/>')
        parts.append(
            f'<text class="em-line-name em-{line.column}" x="{start + 9}" y="{_at(place + 4)}">{escape(line.label)}</text>'
        )
    return parts
