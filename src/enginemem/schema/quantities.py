"""Quantities of the data files: texts with a unit, read exactly.

Bytes are read by ``enginemem.units``, with the spelling of the unit enforced. Rates (B/s), compute peaks (FLOP/s) and
the annotated types that make pydantic refuse a text that does not parse are here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator

from enginemem.units import Exact, parse_decimal, parse_quantity

_POWERS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_PER_SECOND = re.compile(
    r"(?P<whole>\d{1,3}(?:,\d{3}){1,6}|\d{1,18})(?P<decimals>\.\d{1,18})? "
    r"(?P<prefix>[kMGTP]?)(?P<binary>i?)(?P<unit>B|FLOP)/s"
)

_BYTES = re.compile(r"[0-9.,]+ ?(?:B|kB|[MGT]B|[KMGT]iB)")


def parse_bytes(text: str) -> Exact:
    """Bytes of a text such as ``79.18 GiB``, exact; in a data file the unit is spelled exactly. Raises ValueError."""
    if _BYTES.fullmatch(text) is None:
        raise ValueError(f"not a number with a unit such as 512 MiB or 3 GB: {text!r}")
    return parse_quantity(text)


def _simplest(value: Fraction) -> Exact:
    return value.numerator if value.denominator == 1 else value


def _per_second(text: str, unit: str) -> Exact:
    match = _PER_SECOND.fullmatch(text)
    if match is None or match["unit"] != unit:
        raise ValueError(
            f"not a number with a unit such as {'3.35 TB/s' if unit == 'B' else '989.4 TFLOP/s'}: {text!r}"
        )
    if match["binary"] and (unit == "FLOP" or not match["prefix"]):
        raise ValueError(f"no binary prefix here: {text!r}")
    power = _POWERS[match["prefix"]]
    factor = (1024 if match["binary"] else 1000) ** power
    return _simplest(Fraction(match["whole"].replace(",", "") + (match["decimals"] or "")) * factor)


def parse_rate(text: str) -> Exact:
    """Bytes per second of a text such as ``3.35 TB/s`` or ``2,039 GB/s``, exact. Raises ValueError otherwise."""
    return _per_second(text, "B")


def parse_flops(text: str) -> Exact:
    """Operations per second of a text such as ``989.4 TFLOP/s``, exact. Raises ValueError otherwise."""
    return _per_second(text, "FLOP")


def base_units(value: Exact) -> int | str:
    """The JSON form of an exact number: an integer where it is one, else ``numerator/denominator`` in lowest terms."""
    if isinstance(value, int):
        return value
    return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _readable(parse: Callable[[str], Exact]) -> AfterValidator:
    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


BytesText = Annotated[str, _readable(parse_bytes)]
"""A number of bytes with its unit: ``79.18 GiB``."""

RateText = Annotated[str, _readable(parse_rate)]
"""A number of bytes per second with its unit: ``3.35 TB/s``."""

FlopsText = Annotated[str, _readable(parse_flops)]
"""A number of operations per second with its unit: ``989.4 TFLOP/s``."""

DecimalText = Annotated[str, _readable(parse_decimal)]
"""A plain decimal number, kept as text so that it stays exact: ``0.92``."""
