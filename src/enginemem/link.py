"""Links that carry inputs: versioned, readable, canonical. A link is a promise: an old version is upgraded, not guessed.

Numbers travel in the query; what a user pasted would travel in the fragment, which no server log sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from enginemem.inputs import FieldError, InvalidInputs, nearest, shown
from enginemem.scenario import PLAN_INPUTS, Scenario

VERSION = 1
Upgrader = Callable[[dict[str, str]], dict[str, str]]
UPGRADERS: Mapping[int, Upgrader] = {}
"""Version n -> what rewrites a link of version n to version n + 1, writing out every default that n had."""

_SAFE = ",.:/-_"


def encode(scenario: Scenario) -> str:
    """The canonical query of a scenario: `?v=1`, then every input that differs from its default, in table order."""
    from urllib.parse import quote  # noqa: PLC0415 - slow to import, and only links need it

    pairs = [f"{key}={quote(text, safe=_SAFE)}" for key, text in scenario.non_defaults().items()]
    return "?" + "&".join([f"v={VERSION}", *pairs])


def query_of(text: str) -> str:
    """The query of a link: of a whole URL, of `?...`, or the bare query itself; the fragment is left off."""
    before_fragment = text.strip().split("#", 1)[0]
    return before_fragment.split("?", 1)[1] if "?" in before_fragment else before_fragment


def decode(text: str, *, version: int = VERSION, upgraders: Mapping[int, Upgrader] = UPGRADERS) -> Scenario:
    """The scenario that a link opens, upgraded from older versions.

    Raises InvalidInputs that names every unknown key, repeated key, bad value, or the unknown version; nothing is
    dropped silently. A link without `v` is read as version 1, the first.
    """
    from urllib.parse import parse_qsl  # noqa: PLC0415 - slow to import, and only links need it

    try:
        pairs = parse_qsl(
            query_of(text), keep_blank_values=True, strict_parsing=bool(query_of(text)), max_num_fields=200
        )
    except ValueError:
        raise InvalidInputs([FieldError("link", shown(text), "key=value pairs joined by &")]) from None
    values: dict[str, str] = {}
    errors: list[FieldError] = []
    for key, value in pairs:
        if key in values:
            errors.append(FieldError(key, shown(value), "one value; the link gives the key twice"))
        values[key] = value
    given = values.pop("v", "1")
    known = [*upgraders, version]
    if not (given.isascii() and given.isdigit()) or int(given[:9]) not in known:
        allowed = f"{', '.join([str(number) for number in sorted(known)])} (a newer page may have written the link)"
        raise InvalidInputs([*errors, FieldError("v", shown(given), allowed)])
    for step in range(int(given), version):
        values = upgraders[step](values)
    for key in values:
        if key not in PLAN_INPUTS:
            keys = ", ".join(PLAN_INPUTS.keys)
            errors.append(FieldError(key, shown(values[key]), f"one of {keys}", nearest(key, PLAN_INPUTS.keys)))
    try:
        scenario = Scenario(**{key: value for key, value in values.items() if key in PLAN_INPUTS})
    except InvalidInputs as invalid:
        raise InvalidInputs([*errors, *invalid.errors]) from None
    if errors:
        raise InvalidInputs(errors)
    return scenario
