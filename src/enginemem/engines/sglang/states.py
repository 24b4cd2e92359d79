"""The pool of recurrent states of one scenario, with its steps."""

from __future__ import annotations

from enginemem.derivation import Operand
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.pool import States, state_slots_of
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Run, StopPlan
from enginemem.units import GIB, gb


def record_states(
    run: Run, model: ModelFacts, options: Options, config: Configuration, *, rest: float
) -> States | None:
    """Slots of recurrent states out of `rest` GiB, as steps; None without recurrent layers. Stops the plan when they
    hold nothing."""
    found = state_slots_of(run.release, model, options, config, rest=rest)
    if found is None:
        return None
    share = run.release.number("mamba_full_memory_ratio")
    operands: dict[str, Operand] = {
        "rest": (rest, "GiB"),
        "share": (share, ""),
        "gib": (GIB, "bytes a GiB"),
        "state": (found.bytes_each, "bytes"),
    }
    run.steps.add(
        "budget.state_slots",
        "Slots of recurrent states",
        "int((rest * share / (1 + share) * gib - state) // state)",
        found.slots,
        "slots",
        operands,
        "mamba_cache",
        role="subtract",
        note=f"A running request takes {found.per_request} of them: its own and those that keep its prefix.",
    )
    run.steps.add(
        "budget.states",
        "Recurrent states",
        "(slots + 1) * state",
        (found.slots + 1) * found.bytes_each,
        "bytes",
        {"slots": (found.slots, "slots"), "state": (found.bytes_each, "bytes")},
        "mamba_cache",
        note="One slot more than requests use, for padding.",
    )
    if found.slots <= 0:
        raise StopPlan(
            "does_not_fit",
            f"the {gb(max(0, int(rest * GIB)))} left beside weights and slack hold no slot of {found.bytes_each:,} bytes "
            "for recurrent states: raise sglang.mem_fraction_static",
            binds="does_not_fit",
        )
    return found
