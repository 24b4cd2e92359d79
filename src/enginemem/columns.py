"""Columns kept from one comparison to the next: an edit of one engine's knob leaves the other engines as they are."""

from __future__ import annotations

from functools import lru_cache

from enginemem.comparison import ENGINES, Column, planned
from enginemem.scenario import PLAN_INPUTS, Scenario

KEPT = 24
"""Columns, eight of each engine."""
_READ = {
    column: tuple([field.key for field in PLAN_INPUTS if field.section == column or field.section not in ENGINES])
    for column in ENGINES
}
"""The inputs that each engine's column depends on."""


class _Seen:
    """A scenario as one engine sees it: equal to every other that differs in other engines' knobs only."""

    __slots__ = ("column", "key", "scenario")

    def __init__(self, column: str, scenario: Scenario) -> None:
        self.column, self.scenario = column, scenario
        self.key = (column, *[scenario.values[key] for key in _READ[column]])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Seen) or self.key != other.key:
            return False
        mine, its = self.scenario.model, other.scenario.model
        return mine is its or mine == its

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=KEPT)
def _kept(seen: _Seen) -> Column:
    return planned(seen.column, seen.scenario)


def kept_column(column: str, scenario: Scenario) -> Column:
    """As `comparison.planned`, from the last few answers where one fits. Callers must not change the plan."""
    return _kept(_Seen(column, scenario))
