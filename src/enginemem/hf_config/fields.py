"""Reading fields of a `config.json`: every bad one is named with its path, the value and what is allowed.

Readers return a harmless stand-in for a bad value and go on, so that one pass finds every problem; `check` then raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from enginemem.inputs import FieldError, InvalidInputs

MOST_LAYERS, MOST_SIZE, MOST_ROWS, MOST_TOKENS = 1_024, 1_048_576, 16_777_216, 1_000_000_000
"""Bounds beyond every published model: layers, widths in elements, rows of a vocabulary, positions."""

_MISSING = object()
_Entry = TypeVar("_Entry")


class UnknownArchitecture(InvalidInputs):
    """A model type, class or quantisation that no rule here covers; the error names it."""


def described(value: object) -> str:
    """A value as an error shows it: short, and never walked into."""
    if value is _MISSING:
        return "a missing field"
    if isinstance(value, Mapping):
        return f"an object of {len(value)} fields"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**24:
        return "a number beyond 10^24"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """The fields of one object of the file; `path` is its place, such as `config.text_config`."""

    def __init__(self, values: Mapping[str, Any], path: str, errors: list[FieldError]) -> None:
        self.values, self.path, self.errors = values, path, errors

    def problem(self, name: str, allowed: str, given: object = _MISSING) -> None:
        """Note that the field `name` is wrong."""
        value = self.values.get(name, _MISSING) if given is _MISSING else given
        self.errors.append(FieldError(f"{self.path}.{name}", described(value), allowed))

    def check(self) -> None:
        """Raise InvalidInputs with every problem so far."""
        if self.errors:
            raise InvalidInputs(self.errors)

    def given(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def first(self, *names: str) -> str:
        """The first of the names that is given, else the first."""
        return next((name for name in names if self.given(name)), names[0])

    def optional(self, name: str, *, low: int = 1, high: int = MOST_SIZE) -> int | None:
        """A whole number, or None when it is missing or null."""
        return self.count(name, low=low, high=high) if self.given(name) else None

    def count(self, name: str, default: int | None = None, *, low: int = 1, high: int = MOST_SIZE) -> int:
        """A whole number from `low` to `high`; a missing or null one is `default`, or a problem."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.problem(name, f"a whole number from {low:,} to {high:,}")
            return max(low, 1)
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false; a missing or null one is `default`, or a problem."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, bool):
            self.problem(name, "true or false")
            return False
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A text; a missing or null one is `default`, or a problem."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.problem(name, "a text")
            return ""
        return value

    def number(self, name: str, default: Fraction | int | None = None, *, high: int = MOST_TOKENS) -> Fraction:
        """A number above 0, as the decimal that the file shows; a missing or null one is `default`, or a problem."""
        value = self.values.get(name)
        if value is None and default is not None:
            return Fraction(default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= high:
            self.problem(name, f"a number above 0, at most {high:,}")
            return Fraction(1)
        return Fraction(str(value))

    def items(self, name: str, *, most: int = MOST_LAYERS) -> Sequence[Any] | None:
        """A list of at most `most` entries, or None when it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) > most:
            self.problem(name, f"a list of at most {most:,} entries")
            return None
        return value

    def per_layer(self, name: str, layers: int, allowed: Mapping[Any, _Entry]) -> list[_Entry] | None:
        """One entry a layer, each translated by `allowed`; None when the field is missing or null.

        A longer list is accepted: its rest belongs to prediction layers that engines load on their own.
        """
        entries = self.items(name)
        if entries is None:
            return None
        result = []
        for index, entry in enumerate(entries[:layers]):
            known = isinstance(entry, (str, int)) and entry in allowed
            if not known:
                self.problem(f"{name}[{index}]", ", ".join(map(str, allowed)), entry)
            result.append(allowed[entry] if known else next(iter(allowed.values())))
        if len(entries) < layers:
            self.problem(name, f"an entry for each of the {layers} layers")
            result.extend([next(iter(allowed.values()))] * (layers - len(entries)))
        return result

    def inner(self, name: str) -> Fields | None:
        """The fields of a nested object, or None when it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.problem(name, "an object")
            return None
        return Fields(value, f"{self.path}.{name}", self.errors)
