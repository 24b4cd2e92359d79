"""EnginePlan and the contract of the stages.

Every engine's package offers `plan(scenario, release) -> EnginePlan`. It resolves the configuration (stage 0) and runs
budget, pool, admission and dispatch. A stage that cannot be modeled returns NotModeled, and the plan says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from enginemem.architecture import Architecture
from enginemem.derivation import Derivation, Step, Value

Status = Literal["ok", "not_modeled", "does_not_fit", "refused"]
Binds = Literal["kv_memory", "request_cap", "token_budget", "prompt_limit", "does_not_fit"]
SetBy = Literal["user", "default", "derived"]


class Resolved(NamedTuple):
    """One value of the engine's resolved configuration and who set it."""

    value: Value
    set_by: SetBy


class SteadyState(NamedTuple):
    """Running requests under an endless backlog: the law's mean and the interval that covers the measurements.

    `law` names the law, `regime` what shapes it: `memory`, `request_cap`, `retraction` or `reserved`.
    """

    mean: float
    low: float
    high: float
    law: str
    regime: str


class EnginePlan:
    """What one engine does with the GPU's memory. Bytes and tokens are per GPU unless the name says otherwise.

    A long request of t tokens holds `kv_fixed_bytes_per_request` + t x `kv_bytes_per_token` bytes: windows, chunks and
    recurrent states are fixed, layers that keep the whole context grow. `kv_bytes_all_layers` is what a token takes
    while it is inside every window; it is not part of the document.
    Fields that a status other than `ok` leaves unknown are None. The rooflines are filled in by the comparison.
    A plain class, not a dataclass: importing dataclasses would cost a third of the package's import time.
    """

    engine: str
    release: str
    status: Status
    reason: str | None
    weights_bytes: int | None
    kv_pool_bytes: int | None
    kv_tokens: int | None
    kv_tokens_logged: int | None
    log_line: str | None
    page_tokens: int | None
    blocks: int | None
    kv_bytes_per_token: int | Fraction | None
    kv_fixed_bytes_per_request: int | None
    output_limit: int | None
    running: int | None
    running_steady: SteadyState | None
    running_burst: int | None
    running_decayed: int | None
    binds: Binds | None
    largest_decode_graph: int | None
    in_graph: bool | None
    graph_note: str | None
    step_token_budget: int | None
    decode_step_seconds: Fraction | None
    output_tokens_per_second: Fraction | None
    prefill_seconds: Fraction | None
    kv_bytes_all_layers: int | None
    resolved: dict[str, Resolved]
    derivation: Derivation

    def __init__(self, engine: str, release: str, derivation: Derivation | None = None) -> None:
        for name in PLAN_FIELDS:
            setattr(self, name, None)
        self.kv_bytes_all_layers = None
        self.engine = engine
        self.release = release
        self.status = "ok"
        self.resolved = {}
        self.derivation = derivation or Derivation(engine, {})

    @property
    def steps(self) -> list[Step]:
        """The steps of the plan, in order."""
        return self.derivation.steps

    def stop(self, status: Status, reason: str) -> EnginePlan:
        """This plan, ended early with a status other than `ok`."""
        self.status = status
        self.reason = reason
        if status == "does_not_fit":
            self.binds = "does_not_fit"
        return self


def registry_problem(model: Architecture, *, engine: str, registry: str) -> str | None:
    """Why an engine has no class for the model, from the file or folder of its `registry`; None where it has one."""
    if not model.registered:
        return None
    return (
        f"no class {model.class_name} in the registry of {engine} ({registry}); it has {' and '.join(model.registered)}"
    )


_INNER = ("derivation", "kv_bytes_all_layers")
PLAN_FIELDS: tuple[str, ...] = tuple([name for name in EnginePlan.__annotations__ if name not in _INNER])
"""The names of a plan's fields, in the order in which JSON lists them."""


class Sensitivity(NamedTuple):
    """Pool and published running count at one value of the memory assumption, bytes and requests; None when the plan
    is not ok there."""

    assumption_bytes: int
    kv_pool_bytes: int | None
    kv_tokens: int | None
    running: int | None


StepIds = Mapping[str, Step]
