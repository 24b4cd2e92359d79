"""What the plans say together, in one sentence: does the admission rule make the gap, or the pool?"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from enginemem.engines.plan import EnginePlan
from enginemem.release import load_release
from enginemem.units import requests, round_half_up


class Finding(NamedTuple):
    """The sentence, and the two spreads behind it (largest over smallest, minus one), None with fewer than two plans.

    `admission_makes_the_gap` is the premise that running counts differ by more than the pools do.
    """

    text: str
    pool_spread: Fraction | None
    running_spread: Fraction | None
    admission_makes_the_gap: bool | None


def percent(spread: Fraction) -> str:
    """A spread in percent, one decimal below 10 %, none above."""
    value = spread * 100
    return round_half_up(value, 0 if value >= 10 else 1) + " %"


def find(plans: Mapping[str, EnginePlan]) -> Finding:
    """The finding over the plans that are ok; the others are named with their status."""
    usable = {
        load_release(column).name: _Usable(plan.kv_pool_bytes, plan.running, plan.binds)
        for column, plan in plans.items()
        if plan.status == "ok" and plan.kv_pool_bytes and plan.running
    }
    missing = [
        f"{load_release(column).name} {_WORDS.get(plan.status, 'runs no request')}"
        for column, plan in plans.items()
        if load_release(column).name not in usable
    ]
    left_out = f" ({'; '.join(missing)}.)" if missing else ""
    if not usable:
        return Finding(f"No engine runs a request with these inputs.{left_out}", None, None, None)
    if len(usable) == 1:
        (name, only), *_ = usable.items()
        return Finding(f"Only {name} runs requests with these inputs: {only.running:,}.{left_out}", None, None, None)
    return _spread(usable, left_out)


_WORDS = {"not_modeled": "is not modeled", "does_not_fit": "does not fit", "refused": "refuses"}
_LIMITS = {"request_cap": "request cap", "token_budget": "token budget"}
"""What binds beside the KV memory."""


class _Usable(NamedTuple):
    pool: int
    running: int
    binds: str | None


def _cause(usable: Mapping[str, _Usable], most: str, least: str) -> str:
    """Who makes the gap between the two engines, where the pools do not."""
    high, low = [_LIMITS.get(usable[name].binds or "") for name in (most, least)]
    if high is None and low is None:
        return "the admission rules make the gap."
    if high == low:
        return f"the engines' {high}s make the gap."
    its = ["KV memory" if limit is None else f"its {limit}" for limit in (high, low)]
    return f"{most} is bound by {its[0]}, {least} by {its[1]}."


def _spread(usable: Mapping[str, _Usable], left_out: str) -> Finding:
    pools = [each.pool for each in usable.values()]
    most = max(usable, key=lambda name: usable[name].running)
    least = min(usable, key=lambda name: usable[name].running)
    high, low = usable[most].running, usable[least].running
    pool_spread = Fraction(max(pools), min(pools)) - 1
    running_spread = Fraction(high, low) - 1
    if high == low:
        who = f"{' and '.join(usable)} each run" if left_out else "every engine runs"
        text = f"KV pools differ by {percent(pool_spread)}, yet {who} {requests(high)}: no gap to explain."
        return Finding(text + left_out, pool_spread, running_spread, False)
    counts = f"{most} runs {high:,}, {least} {low:,}"
    differ = f"KV pools differ by {percent(pool_spread)}, running requests by {percent(running_spread)} ({counts})"
    premise = running_spread > pool_spread
    verdict = (
        _cause(usable, most, least)
        if premise
        else "the pools differ at least as much, so here the admission rules do not make the gap."
    )
    return Finding(f"{differ}: {verdict}{left_out}", pool_spread, running_spread, premise)
