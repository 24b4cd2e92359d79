"""How single figures read: one way for every face."""

from __future__ import annotations

from fractions import Fraction

from enginemem.derivation import Value
from enginemem.engines.plan import EnginePlan
from enginemem.units import GB, GIB, MIB, decimal_text, gb, round_half_up

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
_SHORT = 4
_PRINTED_IN_BINARY = ("total", "preload")


def count(value: int | None, unit: str = "") -> str:
    """A whole number with thousands separators, or a dash."""
    return DASH if value is None else f"{value:,}" + (f" {unit}" if unit else "")


def gigabytes(value: int | Fraction | None) -> str:
    """Bytes as GB with two decimals, or a dash."""
    return DASH if value is None else gb(value)


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


def operand(value: Value, unit: str, name: str = "") -> str:
    """An operand inside a substituted expression, exact, with its unit; `name` tells a memory total from a figure."""
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool) and unit == "bytes":
        return quantity(value, binary=name.endswith(_PRINTED_IN_BINARY))
    if isinstance(value, tuple):
        short = len(value) <= _SHORT
        return f"({', '.join([operand(item, unit, name) for item in value])})" if short else f"[{len(value):,} values]"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bool) or value is None:
        return str(value)
    if unit == "s":
        return milliseconds(Fraction(value), 3)
    number = _number(value)
    return f"{number} {unit}" if unit in ("B/s", "FLOP/s", "MiB", "GiB") else number


def quantity(value: int | Fraction, *, binary: bool = False) -> str:
    """Bytes without any rounding: in GB where three decimals say it exactly, else in bytes.

    `binary` figures (memory totals, as tools print them) are said in GiB or MiB where that is exact.
    """
    exact = Fraction(value)
    for unit, factor in (("GiB", GIB), ("MiB", MIB)) if binary else (("GB", GB),):
        text = decimal_text(exact / factor, 3)
        if text is not None and abs(exact) >= factor // 1000:
            return f"{_thousands(text)} {unit}"
    return f"{_number(value)} B"


def _thousands(text: str) -> str:
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}"


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
        if exact is None:
            return round_half_up(value, 3)
        return _thousands(exact)
    if value.is_integer():
        return f"{int(value):,}"
    text = repr(value)
    if len(text) <= 10:
        return text
    return round_half_up(Fraction(value), 4 if abs(value) < 100 else 2)
