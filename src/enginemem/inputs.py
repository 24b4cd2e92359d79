"""The one table of inputs: form fields, link keys, flags, validation and documentation all derive from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from enginemem.units import (
    MAX_DECIMALS,
    Exact,
    decimal_text,
    parse_count,
    parse_decimal,
    parse_quantity,
    quantity_text,
)

Kind = Literal["gpu", "model", "count", "quantity", "decimal", "choice", "flag", "counts"]
InputValue = int | Fraction | str | bool | tuple[int, ...] | None
"""A validated value; None stands for `auto`, which is not the same as the value that auto leads to."""

MAX_TOKENS = 100_000_000
MAX_BYTES = 10**13


class FieldError(NamedTuple):
    """One bad field: its name, the value given, what is allowed, and the nearest known name if there is one."""

    field: str
    given: str
    allowed: str
    suggestion: str | None = None

    def __str__(self) -> str:
        """The error in one line."""
        hint = f" Did you mean {self.suggestion}?" if self.suggestion else ""
        return f"{self.field}: {self.given} is not allowed; allowed: {self.allowed}.{hint}"


class TooManyDecimals(ValueError):
    """A number that no link could carry exactly."""


class InvalidInputs(ValueError):
    """Every bad field at once, in `errors`."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors
        super().__init__("\n".join([str(error) for error in errors]))


def nearest(text: str, known: tuple[str, ...]) -> str | None:
    """The known name closest to `text`, or None when none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only needed on errors, and slow to import

    matches = get_close_matches(text.lower(), known, n=1, cutoff=0.5)
    return matches[0] if matches else None


class Input(NamedTuple):
    """One input.

    `low` and `high` are inclusive bounds in the input's unit; `default` is the text of the default; `step` is the
    factor or increment that a form offers; `option` is the engine's own flag of a knob; `assumption` marks what no
    release decides and nobody but a measurement knows.
    """

    key: str
    label: str
    kind: Kind
    unit: str
    default: str
    help: str
    section: str
    low: Exact = 0
    high: Exact = MAX_TOKENS
    low_open: bool = False
    choices: Callable[[], tuple[str, ...]] | None = None
    resolve: Callable[[str], str | None] | None = None
    assumption: bool = False
    auto: bool = False
    option: str | None = None

    @property
    def flag(self) -> str | None:
        """The command line's flag; engine knobs have none of their own and go through `--set`."""
        return None if "." in self.key else "--" + self.key.replace("_", "-")

    @property
    def allowed(self) -> str:
        """What may be given, in words."""
        auto = "auto, or " if self.auto else ""
        if self.choices is not None:
            return ", ".join((("auto",) if self.auto else ()) + self.choices())
        low, high = self._bound(self.low), self._bound(self.high)
        between = f"{'more than' if self.low_open else 'from'} {low} {'up ' if self.low_open else ''}to {high}"
        if self.kind == "count":
            return f"{auto}a whole number of {self.unit} {between}"
        if self.kind == "quantity":
            return f"{auto}a quantity with its unit (3GB, 0.5GiB) {between}"
        if self.kind == "decimal":
            return f"{auto}a number {between}"
        if self.kind == "flag":
            return f"{auto}true or false"
        return f"{auto}whole numbers {between}, separated by commas"

    def _bound(self, value: Exact) -> str:
        if self.kind == "quantity":
            return quantity_text(value)
        return f"{value:,}" if isinstance(value, int) else str(decimal_text(value))

    def parse(self, raw: object) -> InputValue:
        """The validated value of `raw` (text, or the matching Python type); raises ValueError when it is not allowed."""
        if raw is None or (isinstance(raw, str) and raw.strip().lower() == "auto"):
            if not self.auto:
                raise ValueError("auto is not offered here")
            return None
        value = _PARSERS[self.kind](self, raw)
        if self.kind in ("count", "quantity", "decimal") and isinstance(value, (int, Fraction)):
            self._check_bounds(value)
        if isinstance(value, tuple):
            for item in value:
                self._check_bounds(item)
        return value

    def _check_bounds(self, value: Exact) -> None:
        if not (self.low < value if self.low_open else self.low <= value) or value > self.high:
            raise ValueError("out of bounds")
        if isinstance(value, Fraction) and decimal_text(value) is None:
            raise TooManyDecimals(f"a number with at most {MAX_DECIMALS} decimals")

    def text(self, value: InputValue) -> str:
        """The canonical text of a validated value, as links and JSON hold it."""
        if value is None:
            return "auto"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join([str(item) for item in value])
        if isinstance(value, str):
            return value
        if self.kind == "quantity":
            return quantity_text(value)
        return str(value) if isinstance(value, int) else str(decimal_text(value))


def _parse_count(_field: Input, raw: object) -> InputValue:
    if isinstance(raw, bool):
        raise ValueError("no number")
    if isinstance(raw, int):
        return raw
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    if isinstance(raw, str):
        return parse_count(raw)
    raise ValueError("no whole number")


def _parse_quantity(_field: Input, raw: object) -> InputValue:
    if isinstance(raw, (int, Fraction)) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        return parse_quantity(raw)
    raise ValueError("no quantity")


def _parse_decimal(_field: Input, raw: object) -> InputValue:
    if isinstance(raw, bool):
        raise ValueError("no number")
    if isinstance(raw, (int, float)):
        return parse_decimal(repr(raw))
    if isinstance(raw, Fraction):
        return raw
    if isinstance(raw, str):
        return parse_decimal(raw)
    raise ValueError("no number")


def _parse_choice(field: Input, raw: object) -> InputValue:
    text = str(raw).strip()
    if field.resolve is not None:
        found = field.resolve(text)
        if found is not None:
            return found
    elif field.choices is not None:
        for choice in field.choices():
            if choice.lower() == text.lower():
                return choice
    raise ValueError("no known name")


def _parse_flag(_field: Input, raw: object) -> InputValue:
    if isinstance(raw, bool):
        return raw
    known = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
    value = known.get(str(raw).strip().lower())
    if value is None:
        raise ValueError("neither true nor false")
    return value


def _parse_counts(field: Input, raw: object) -> InputValue:
    if isinstance(raw, (list, tuple)):
        items: list[object] = list(raw)
    elif isinstance(raw, str):
        items = list(raw.split(","))
    else:
        items = [raw]
    if not items or len(items) > 2048:
        raise ValueError("between 1 and 2,048 numbers")
    numbers = []
    for item in items:
        value = _parse_count(field, item)
        if not isinstance(value, int):
            raise ValueError("no whole number")
        numbers.append(value)
    return tuple(sorted(set(numbers)))


_PARSERS: Mapping[Kind, Callable[[Input, object], InputValue]] = {
    "gpu": _parse_choice,
    "model": _parse_choice,
    "choice": _parse_choice,
    "count": _parse_count,
    "quantity": _parse_quantity,
    "decimal": _parse_decimal,
    "flag": _parse_flag,
    "counts": _parse_counts,
}


class InputTable:
    """An ordered table of inputs; one instance a page (the plan, each experiment)."""

    def __init__(self, *fields: Input) -> None:
        self._fields = {field.key: field for field in fields}
        self._defaults: dict[str, InputValue] | None = None

    def __iter__(self) -> Iterator[Input]:
        return iter(self._fields.values())

    def __getitem__(self, key: str) -> Input:
        return self._fields[key]

    def __contains__(self, key: object) -> bool:
        return key in self._fields

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys in canonical order."""
        return tuple(self._fields)

    def defaults(self) -> dict[str, InputValue]:
        """A fresh mapping of every key to its default value."""
        if self._defaults is None:
            self._defaults = {field.key: field.parse(field.default) for field in self}
        return dict(self._defaults)

    def validate(self, given: Mapping[str, object]) -> dict[str, InputValue]:
        """All values, the given ones parsed and the others at their defaults, in canonical order.

        Raises InvalidInputs that names every unknown key and every bad value.
        """
        values = self.defaults()
        errors: list[FieldError] = []
        for key, raw in given.items():
            field = self._fields.get(key)
            if field is None:
                errors.append(FieldError(key, shown(raw), "one of " + ", ".join(self.keys), nearest(key, self.keys)))
                continue
            try:
                values[key] = field.parse(raw)
            except TooManyDecimals as problem:
                errors.append(FieldError(key, shown(raw), str(problem)))
            except ValueError:
                names = () if field.choices is None else field.choices()
                # Of numbers the nearest in spelling is no help: 17 is not meant to be 1.
                names = tuple([name for name in names if not name.isdigit()])
                errors.append(FieldError(key, shown(raw), field.allowed, nearest(str(raw), names) if names else None))
        if errors:
            raise InvalidInputs(errors)
        return values


def shown(raw: object) -> str:
    """A given value as an error shows it: short, quoted when it is text."""
    text = repr(raw) if isinstance(raw, str) else str(raw)
    return text if len(text) <= 80 else text[:77] + "..."
