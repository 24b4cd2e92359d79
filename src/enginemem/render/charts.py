"""The three pictures of the calculator, each with the table behind it."""

from __future__ import annotations

from enginemem.comparison import Comparison, runtime_range
from enginemem.release import load_release
from enginemem.render import figures
from enginemem.render.markup import disclosure, escape, scroll_box, title
from enginemem.render.svg import Chart, Line, Tick, doubling, draw, linear, nice_step
from enginemem.sweeps import Sweep, over_max_tokens, over_mean_output, over_runtime
from enginemem.units import GB

_Y = "requests running (published rule)"


def charts(comparison: Comparison) -> str:
    """All three figures; a sentence where no engine has a plan to draw."""
    if not any(plan.status == "ok" for plan in comparison.engines.values()):
        return '<p class="em-small">Nothing to draw: no engine has a plan with these inputs.</p>'
    drawn = (
        _tokens(over_max_tokens(comparison), "Running requests against max_tokens", "max_tokens (each doubling alike)"),
        _tokens(over_mean_output(comparison), "Running requests against mean output", "mean output, tokens"),
        _runtime(over_runtime(comparison)),
    )
    return "".join(drawn)


def _lines(sweep: Sweep) -> tuple[Line, ...]:
    columns = sweep.points[0].running
    return tuple(
        Line(column, load_release(column).name, tuple([(point.at, point.running[column]) for point in sweep.points]))
        for column in columns
    )


def _powers(low: int, high: int, most: int = 5) -> tuple[Tick, ...]:
    """Powers of two inside low .. high, thinned to at most `most`."""
    inside = [1 << power for power in range(high.bit_length()) if low <= 1 << power <= high]
    every = -(-len(inside) // most)
    return tuple([Tick(value, f"{value:,}") for value in inside[::every] or [low]])


def _tokens(sweep: Sweep, heading: str, x_label: str) -> str:
    low, high = sweep.points[0].at, sweep.points[-1].at
    chart = Chart(
        key=sweep.key,
        title=heading,
        x_label=x_label,
        y_label=_Y,
        x_ticks=_powers(low, high),
        lines=_lines(sweep),
        current=sweep.current,
        position=doubling(low, high),
    )
    return _figure(chart, sweep, [f"{point.at:,}" for point in sweep.points])


def _runtime(sweep: Sweep) -> str:
    low, high = sweep.points[0].at, sweep.points[-1].at
    step = nice_step((high - low) // GB, 6) * GB
    ticks = tuple([Tick(value, f"{value // GB:,}") for value in range(-(-low // step) * step, high + 1, step)])
    chart = Chart(
        key=sweep.key,
        title="Running requests against the memory assumption",
        x_label="assumed memory beside the weights, GB a GPU",
        y_label=_Y,
        x_ticks=ticks,
        lines=_lines(sweep),
        current=sweep.current,
        position=linear(low, high),
        band=runtime_range(),
    )
    note = "Shaded: the range that start-up logs state. SGLang holds this memory in its reserve, so its count stays."
    return _figure(chart, sweep, [figures.quantity(point.at) for point in sweep.points], note)


def _figure(chart: Chart, sweep: Sweep, names: list[str], note: str = "") -> str:
    columns = list(sweep.points[0].running)
    head = "".join([f'<th scope="col" class="em-{column}">{title(column)}</th>' for column in columns])
    body = []
    for name, point in zip(names, sweep.points, strict=True):
        here = ' class="em-here" aria-current="true"' if point.at == sweep.current else ""
        cells = "".join([f"<td>{figures.count(point.running[column])}</td>" for column in columns])
        body.append(f'<tr{here}><th scope="row">{name}</th>{cells}</tr>')
    table = (
        f'<table class="em-table"><caption class="em-hidden">{escape(chart.title)}</caption><thead><tr>'
        f'<th scope="col">{escape(sweep.key)}</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    )
    fold = disclosure("Figures as a table", f"{scroll_box(chart.title)}{table}</div>", key=f"em-table-{chart.key}")
    said = f'<p class="em-small">{escape(note)}</p>' if note else ""
    return f"<figure><figcaption>{escape(chart.title)}</figcaption>{draw(chart)}{said}{fold}</figure>"
