"""Quantities: parsing and formatting, exact. GB is 10^9 bytes and GiB is 2^30 bytes; the two never mix.

Everything here is integer or rational arithmetic, so the printed text is the same on every Python.
"""

from __future__ import annotations

import re
from fractions import Fraction

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12

Exact = int | Fraction
"""A number held exactly: an integer, or a rational where a datum is one (79.18 GiB is no whole number of bytes)."""

MAX_DECIMALS = 18
"""Decimals that a number may have: what texts and links carry."""

_BYTE_UNITS: dict[str, int] = {
    "b": 1,
    "kb": KB,
    "mb": MB,
    "gb": GB,
    "tb": TB,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": TIB,
}
_COUNT_SUFFIXES: dict[str, int] = {"": 1, "k": 1_000, "ki": 1_024, "m": 1_000_000, "mi": 1_048_576}
# Bounded digit runs: the pattern sees text that users paste, and a huge exponent would build a huge integer. ASCII digits
# only: a look-alike digit of another script is not guessed at.
_NUMBER = r"(?P<number>[+-]?(?:[0-9]{1,24}(?:[,_][0-9]{3}){0,8})(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?)"
_QUANTITY = re.compile(rf"^\s*{_NUMBER}\s*(?P<unit>[A-Za-z]{{0,3}})\s*$")


def _simplest(value: Fraction) -> Exact:
    return value.numerator if value.denominator == 1 else value


def _number(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace("_", ""))


def parse_quantity(text: str) -> Exact:
    """Bytes of a quantity with its unit (``3GB``, ``0.5 GiB``, ``81,559 MiB``), exact.

    Raises ValueError when the text is no number with a byte unit; a number without a unit is refused, because
    nobody can tell whether it was meant in GB or in GiB.
    """
    match = _QUANTITY.match(text)
    if match is None or not match["unit"]:
        raise ValueError("a quantity with its unit, such as 3GB or 0.5GiB")
    factor = _BYTE_UNITS.get(match["unit"].lower())
    if factor is None:
        raise ValueError("a unit among B, kB, MB, GB, TB, KiB, MiB, GiB, TiB")
    return _simplest(_number(match["number"]) * factor)


def parse_count(text: str) -> int:
    """A whole number of tokens or requests: ``2000``, ``32k`` (1,000), ``32Ki`` (1,024), ``1e5``.

    Raises ValueError for fractions, NaN and anything else.
    """
    match = _QUANTITY.match(text)
    factor = None if match is None else _COUNT_SUFFIXES.get(match["unit"].lower())
    if match is None or factor is None:
        raise ValueError("a whole number such as 2000, 32k (= 32,000) or 32Ki (= 32,768)")
    value = _number(match["number"]) * factor
    if value.denominator != 1:
        raise ValueError("a whole number")
    return value.numerator


def parse_decimal(text: str) -> Fraction:
    """A plain decimal number such as ``0.92``, exact; raises ValueError otherwise."""
    match = _QUANTITY.match(text)
    if match is None or match["unit"]:
        raise ValueError("a decimal number such as 0.92")
    return _number(match["number"])


def decimal_text(value: Exact, places: int = MAX_DECIMALS) -> str | None:
    """The finite decimal expansion of ``value``, or None when it needs more than ``places`` places."""
    scaled = Fraction(value) * 10**places
    if scaled.denominator != 1:
        return None
    digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
    whole, rest = digits[:-places], digits[-places:].rstrip("0")
    return ("-" if value < 0 else "") + whole + ("." + rest if rest else "")


def quantity_text(value: Exact) -> str:
    """The canonical text of a quantity: the first unit that holds it in at most three decimals, else exact bytes.

    ``parse_quantity(quantity_text(x)) == x`` for every x that a quantity text can name.
    """
    if value == 0:
        return "0B"
    for unit, factor in (("GB", GB), ("GiB", GIB), ("MiB", MIB), ("MB", MB)):
        text = decimal_text(Fraction(value) / factor, 3)
        if text is not None:
            return text + unit
    exact = decimal_text(value)
    if exact is None:
        raise ValueError(f"{value} bytes have no finite decimal text")
    return exact + "B"


def round_half_up(value: Exact, places: int = 0) -> str:
    """``value`` with a fixed number of decimals, rounded half up, thousands separated by commas."""
    numerator, denominator = (value, 1) if isinstance(value, int) else (value.numerator, value.denominator)
    return _ratio_text(numerator, denominator, places)


def _ratio_text(numerator: int, denominator: int, places: int) -> str:
    scale = 10**places
    scaled = (2 * abs(numerator) * scale + denominator) // (2 * denominator)
    sign = "-" if numerator < 0 and scaled else ""
    if places == 0:
        return f"{sign}{scaled:,}"
    whole, rest = divmod(scaled, scale)
    return f"{sign}{whole:,}.{rest:0{places}d}"


def gb(value: Exact, places: int = 2) -> str:
    """Bytes as GB (10^9), rounded half up: ``59.16 GB``."""
    return f"{_ratio_text(value.numerator, value.denominator * GB, places)} GB"


def gib(value: Exact, places: int = 2) -> str:
    """Bytes as GiB (2^30), rounded half up: ``55.29 GiB``."""
    return f"{_ratio_text(value.numerator, value.denominator * GIB, places)} GiB"


def requests(count: int) -> str:
    """A number of requests in words: ``1 request``, ``1,024 requests``."""
    return f"{count:,} request" if count == 1 else f"{count:,} requests"


def ceil_div(a: int, b: int) -> int:
    """``ceil(a / b)`` on integers, ``b > 0``."""
    return -(-a // b)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is at least ``value``."""
    return -(-value // multiple) * multiple
