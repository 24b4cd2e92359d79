"""The comparison's rows: labels and cells, once for every face; the raw values behind them for machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from enginemem.columns import KEPT
from enginemem.comparison import Comparison, Range, plain, runtime_range
from enginemem.engines.plan import EnginePlan
from enginemem.release import load_release
from enginemem.render import figures
from enginemem.units import round_half_up


class Row(NamedTuple):
    """One row: its label, the formatted cell of each column, and the raw value behind each (None where unknown)."""

    label: str
    cells: tuple[str, ...]
    values: tuple[object, ...]


class _Line(NamedTuple):
    label: str
    cell: Callable[[EnginePlan], str]
    value: Callable[[EnginePlan], object]


_LINES = (
    _Line("Status", lambda p: figures.STATUS[p.status], lambda p: p.status),
    _Line("Running (published rule)", lambda p: figures.count(p.running), lambda p: p.running),
    _Line("Running (steady state)", figures.steady, lambda p: None if p.running_steady is None else p.running_steady.mean),
    _Line("Steady state shaped by", figures.steady_regime, figures.steady_regime),
    _Line("Burst from idle", lambda p: figures.count(p.running_burst), lambda p: p.running_burst),
    _Line("Running, forecast decayed", lambda p: figures.count(p.running_decayed), lambda p: p.running_decayed),
    _Line("What binds", figures.binds, lambda p: p.binds),
    _Line("Weights per GPU", lambda p: figures.gigabytes(p.weights_bytes), lambda p: p.weights_bytes),
    _Line("KV pool per GPU", lambda p: figures.gigabytes(p.kv_pool_bytes), lambda p: p.kv_pool_bytes),
    _Line("KV tokens per replica", lambda p: figures.count(p.kv_tokens), lambda p: p.kv_tokens),
    _Line(
        "KV bytes per token per GPU",
        lambda p: figures.DASH if p.kv_bytes_per_token is None else figures.operand(p.kv_bytes_per_token, ""),
        lambda p: plain(p.kv_bytes_per_token),
    ),
    _Line("KV bytes fixed per request per GPU", lambda p: _fixed(p.kv_fixed_bytes_per_request),
          lambda p: plain(p.kv_fixed_bytes_per_request)),
    _Line("Page", lambda p: figures.count(p.page_tokens, "token" if p.page_tokens == 1 else "tokens"),
          lambda p: p.page_tokens),
    _Line("Step token budget", lambda p: figures.count(p.step_token_budget), lambda p: p.step_token_budget),
    _Line("Largest decode graph", lambda p: figures.count(p.largest_decode_graph), lambda p: p.largest_decode_graph),
    _Line("Running batch in a graph", lambda p: figures.yes_no(p.in_graph), lambda p: p.in_graph),
    _Line("Decode step, floor", lambda p: figures.milliseconds(p.decode_step_seconds), lambda p: _ratio(p.decode_step_seconds)),
    _Line("Aggregate output, ceiling", lambda p: figures.rate(p.output_tokens_per_second),
          lambda p: _ratio(p.output_tokens_per_second)),
    _Line("Prefill of one prompt, floor", lambda p: figures.milliseconds(p.prefill_seconds, 1),
          lambda p: _ratio(p.prefill_seconds)),
)  # fmt: skip


def _fixed(value: int | Fraction | None) -> str:
    """Nothing for a model whose requests have no fixed part."""
    return figures.operand(value, "") if value else figures.DASH


def _ratio(value: Fraction | None) -> float | None:
    return None if value is None else value.numerator / value.denominator


def titles(comparison: Comparison) -> tuple[str, ...]:
    """The column titles, such as `vLLM 0.32.0`."""
    return tuple([f"{load_release(column).name} {plan.release}" for column, plan in comparison.engines.items()])


def rows(comparison: Comparison) -> list[Row]:
    """All rows of the comparison in reading order; rows that no column fills are left out."""
    of_plans = zip(*[_plan_cells(plan) for plan in comparison.engines.values()], strict=True)
    of_ranges = zip(*[_range_cells(item) for item in comparison.ranges.values()], strict=True)
    table = [_row(line.label, cells) for line, cells in zip(_LINES, of_plans, strict=True)]
    table = [row for row in table if any(cell != figures.DASH for cell in row.cells)]
    low, high = runtime_range()
    return table + [_row(label, cells) for label, cells in zip(_range_labels(low, high), of_ranges, strict=True)]


_Cell = tuple[str, object]
"""How it reads, and the raw value."""


def _row(label: str, cells: Sequence[_Cell]) -> Row:
    return Row(label, tuple([text for text, _ in cells]), tuple([raw for _, raw in cells]))


@lru_cache(maxsize=KEPT)
def _plan_cells(plan: EnginePlan) -> list[_Cell]:
    return [(line.cell(plan), line.value(plan)) for line in _LINES]


@lru_cache(maxsize=1)
def _range_labels(low: int, high: int) -> tuple[str, str, str]:
    ends = f"{figures.quantity(low)} to {figures.quantity(high)} of runtime memory"
    return f"KV pool at {ends}", f"Running at {ends}", "KV tokens lost per GB of runtime memory"


@lru_cache(maxsize=KEPT)
def _range_cells(item: Range) -> tuple[_Cell, _Cell, _Cell]:
    return _between(item, "kv_pool_bytes"), _between(item, "running"), _tokens_per_gb(item)


def _between(item: Range, field: str) -> tuple[str, object]:
    low, high = getattr(item.low, field), getattr(item.high, field)
    if low is None and high is None:
        return figures.DASH, None
    text = figures.gigabytes if field == "kv_pool_bytes" else figures.count
    cell = text(low) if low == high else f"{text(low)} to {text(high)}"
    return cell, f"{low};{high}"


def _tokens_per_gb(item: Range) -> tuple[str, object]:
    if item.tokens_per_gb is None:
        return figures.DASH, None
    return round_half_up(item.tokens_per_gb), _ratio(item.tokens_per_gb)
