"""One plan in the making, and how a stage ends it early: refused, does not fit, not modeled."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.derivation import Derivation
from enginemem.engines.plan import Binds, EnginePlan, Status
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario


class Run(NamedTuple):
    """What every stage reads, the steps it adds to, and the plan it fills in."""

    scenario: Scenario
    release: EngineRelease
    steps: Derivation
    plan: EnginePlan


class StopPlan(Exception):
    """Ends the plan with `status` and a reason that says what to change; `plan` catches it."""

    def __init__(self, status: Status, reason: str, *, binds: Binds | None = None) -> None:
        super().__init__(reason)
        self.status: Status = status
        self.reason = reason
        self.binds: Binds | None = binds


def refused(reason: str, *, binds: Binds | None = None) -> StopPlan:
    """The engine or its server refuses these inputs."""
    return StopPlan("refused", reason, binds=binds)


def not_modeled(reason: str) -> StopPlan:
    """A fact is missing, or a rule is not known here; the reason names it."""
    return StopPlan("not_modeled", reason)


def does_not_fit(reason: str) -> StopPlan:
    """The memory does not hold it; the reason has the figures."""
    return StopPlan("does_not_fit", reason, binds="does_not_fit")
