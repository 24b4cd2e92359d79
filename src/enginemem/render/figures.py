"""How single figures read: one way for every face."""

from __future__ import annotations

from fractions import Fraction

from enginemem.derivation import Value
from enginemem.engines.plan import EnginePlan
from enginemem.units import GB, GIB, decimal_text, round_half_up

BINDS = {
    "kv_memory": "KV memory",
    "request_cap": "request cap",
    "token_budget": "step token budget",
    "prompt_limit": "prompt limit",
    "does_not_fit": "does not fit",
}
STATUS = {
    "ok": "ok",
    "not_modeled": "Not modeled",
    "does_not_fit": "Does not fit",
    "refused": "Refused",
}
DASH = "-"


def count(value: int | None, unit: str = "") -> str:
    """A whole number with thousands separators, or a dash."""
    return DASH if value is None else f"{value:,}" + (f" {unit}" if unit else "")


def gigabytes(value: int | Fraction | None) -> str:
    """Bytes as GB with two decimals, or a dash."""
    return DASH if value is None else f"{round_half_up(Fraction(value) / GB, 2)} GB"


def milliseconds(value: Fraction | None, places: int = 2) -> str:
    """Seconds as ms, or a dash."""
    return DASH if value is None else f"{round_half_up(value * 1000, places)} ms"


def rate(value: Fraction | None) -> str:
    """Tokens a second, or a dash."""
    return DASH if value is None else f"{round_half_up(value)} tok/s"


def binds(plan: EnginePlan) -> str:
    """What binds, in words."""
    return DASH if plan.binds is None else BINDS[plan.binds]


def yes_no(value: bool | None) -> str:
    """yes, no or a dash."""
    return DASH if value is None else ("yes" if value else "no")


def steady(plan: EnginePlan) -> str:
    """The steady state as `195 (192 to 198)`."""
    state = plan.running_steady
    if state is None:
        return DASH
    mean, low, high = (round_half_up(Fraction(value)) for value in (state.mean, state.low, state.high))
    return mean if low == high else f"{mean} ({low} to {high})"


def steady_regime(plan: EnginePlan) -> str:
    """What shapes the steady state."""
    return DASH if plan.running_steady is None else plan.running_steady.regime.replace("_", " ")


def figure(value: Value, unit: str) -> str:
    """A step's value with its unit, as a ledger shows it: large byte figures also in GB."""
    if value is None:
        return DASH
    if isinstance(value, bool):
        return yes_no(value)
    if isinstance(value, tuple):
        return _listing(value) + (f" {unit}" if unit else "")
    if isinstance(value, str):
        return value
    number, exact = _number(value), Fraction(value)
    if unit == "bytes" and abs(exact) >= GB // 10:
        return f"{number} B ({gigabytes(exact)})"
    if unit == "bytes":
        return f"{number} B"
    if unit == "s":
        return milliseconds(Fraction(value), 3)
    return number + (f" {unit}" if unit else "")


def operand(value: Value, unit: str) -> str:
    """An operand inside a substituted expression: short, exact where that is short, with its unit."""
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool) and unit == "bytes":
        return quantity(value)
    if isinstance(value, tuple):
        return f"[{len(value)} sizes]"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bool) or value is None:
        return str(value)
    if unit == "s":
        return milliseconds(Fraction(value), 3)
    number = _number(value)
    return f"{number} {unit}" if unit in ("B/s", "FLOP/s", "MiB", "GiB") else number


def quantity(value: int | Fraction) -> str:
    """Bytes in the unit that says them shortest without rounding away more than a hundredth of a GB."""
    exact = Fraction(value)
    for unit, factor in (("GB", GB), ("GiB", GIB)):
        text = decimal_text(exact / factor, 3)
        if text is not None and abs(exact) >= factor // 1000:
            return f"{text} {unit}"
    return gigabytes(value) if abs(exact) >= GB // 10 else f"{_number(value)} B"


def _listing(values: tuple[int, ...]) -> str:
    if len(values) <= 8:
        return ", ".join([f"{value:,}" for value in values])
    head = ", ".join([f"{value:,}" for value in values[:3]])
    return f"{head}, ... {values[-1]:,} ({len(values):,} values)"


def _number(value: float | Fraction) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Fraction):
        exact = decimal_text(value, 6)
        if exact is not None and len(exact) <= 12:
            return exact
        return round_half_up(value, 3)
    text = repr(value)
    if len(text) <= 10:
        return text
    return round_half_up(Fraction(value), 4 if abs(value) < 100 else 2)
