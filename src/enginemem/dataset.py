"""The generated data inside the package: JSON made from `data/*.yaml`, read on first use.

The package's own loader reads it, so that it works from a folder and from a zip alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, cast

from enginemem.units import Exact


def read(*path: str) -> Mapping[str, Any]:
    """The generated JSON document `enginemem/data/<path...>`; raises OSError when there is none."""
    import json  # noqa: PLC0415 - importing the package must be quick, and only reading needs it

    document: Mapping[str, Any] = json.loads(_loader().get_data("/".join((_FOLDER, "data", *path))))
    return document


def _loader() -> Any:
    # Both importlib's SourceFileLoader and zipimport's zipimporter have get_data; importlib.resources has it too,
    # at the price of importing tempfile and shutil.
    return cast(Any, __spec__).loader


_FOLDER = __file__.replace("\\", "/").rpartition("/")[0]


@cache
def names(folder: str) -> tuple[str, ...]:
    """The documents in the folder `enginemem/data/<folder>`, sorted, without `.json`."""
    files: list[str] = read("digest.json")["files"]
    inside = [name.removeprefix(folder + "/") for name in files if name.startswith(folder + "/")]
    return tuple([name.removesuffix(".json") for name in inside])


def exact(value: int | str | None) -> Exact | None:
    """A stored number: an integer, a ratio as `numerator/denominator`, or null."""
    if value is None or isinstance(value, int):
        return value
    number = Fraction(value)
    return number.numerator if number.denominator == 1 else number
