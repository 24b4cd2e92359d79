"""The comparison as an HTML table; on request each cell with its difference from one engine's."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from enginemem.comparison import Comparison
from enginemem.render.markup import escape, figure, title
from enginemem.render.rows import Row, rows
from enginemem.units import round_half_up

_PLAIN_FIRST = frozenset({"Status", "Steady state shaped by", "What binds", "Running batch in a graph"})


def comparison_table(
    comparison: Comparison, *, reference: str | None = None, only: tuple[str, ...] | None = None
) -> str:
    """The table, all of its rows or `only` those with the given labels.

    `reference` is the column that the others are compared with; None shows no differences. Raises ValueError when a
    label in `only` is no row's.
    """
    columns = list(comparison.engines)
    base = columns.index(reference) if reference in columns else None
    head = "".join([f'<th scope="col" class="em-{column}">{title(column)}</th>' for column in columns])
    body = "".join([_row(index, row, base) for index, row in enumerate(_chosen(comparison, only))])
    return (
        '<table class="em-table"><caption class="em-hidden">The engines side by side</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _chosen(comparison: Comparison, only: tuple[str, ...] | None) -> list[Row]:
    table = rows(comparison)
    if only is None:
        return table
    missing = set(only) - {row.label for row in table}
    if missing:
        raise ValueError(f"no such rows: {', '.join(sorted(missing))}")
    return [row for row in table if row.label in only]


@lru_cache(maxsize=512)
def _row(index: int, row: Row, base: int | None) -> str:
    cells = []
    for column, cell in enumerate(row.cells):
        words = ' class="em-words"' if row.label in _PLAIN_FIRST else ""
        beside = "" if base is None or column == base else _difference(cell, row.values[column], row.values[base])
        cells.append(f"<td{words}>{figure(f'table.{index}.{column}', cell)}{beside}</td>")
    return f'<tr><th scope="row">{escape(row.label)}</th>{"".join(cells)}</tr>'


def _difference(cell: str, value: object, base: object) -> str:
    """`−88 (−42.1 %)` beside a number, in the unit of its cell; nothing beside words."""
    if not _is_number(value) or not _is_number(base):
        return ""
    gap = Fraction(str(value)) - Fraction(str(base))
    reference = Fraction(str(base))
    if not gap:
        return '<span class="em-gap">equal</span>'
    share = "" if not reference else f" ({signed(100 * gap / abs(reference), 1)} %)"
    unit = cell.rpartition(" ")[2]
    factor, places = _SHOWN.get(unit, (Fraction(1), 0))
    shown = f" {unit}" if unit in _SHOWN else ""
    return f'<span class="em-gap">{signed(gap * factor, places)}{shown}{share}</span>'


_SHOWN = {"GB": (Fraction(1, 10**9), 2), "ms": (Fraction(1000), 2), "tok/s": (Fraction(1), 0)}
"""How a cell of this unit shows its raw value (bytes, seconds, tokens a second), and with how many decimals."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def signed(value: Fraction, places: int) -> str:
    """A rounded number with its sign; what rounds to zero has none."""
    text = round_half_up(abs(value), places)
    if not text.strip("0.,"):
        return text
    return ("−" if value < 0 else "+") + text
