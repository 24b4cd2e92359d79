"""Links that carry inputs: versioned, readable, canonical. A link is a promise: an old version is upgraded, not guessed.

Numbers travel in the query; a pasted configuration travels in the fragment, which no server log sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from enginemem.architecture import Architecture
from enginemem.configuration import MOST_TEXT, read, read_json
from enginemem.inputs import FieldError, InvalidInputs, nearest, shown
from enginemem.scenario import PLAN_INPUTS, Scenario

VERSION = 1
Upgrader = Callable[[dict[str, str]], dict[str, str]]
UPGRADERS: Mapping[int, Upgrader] = {}
"""Version n -> what rewrites a link of version n to version n + 1, writing out every default that n had."""

CARRIED = "config="
"""How the fragment starts that carries a configuration."""
MOST_FRAGMENT = 4_000
"""Characters of a fragment: longer addresses are cut by chats and trackers."""

_SAFE = ",.:/-_"


class Fragment(NamedTuple):
    """What stands behind the `#` of a link: `text` is empty for a preset, None where a link cannot carry it (`reason`)."""

    text: str | None
    reason: str = ""


def query(scenario: Scenario) -> str:
    """The canonical query of a scenario: `?v=1`, then every input that differs from its default, in table order."""
    from urllib.parse import quote  # noqa: PLC0415 - slow to import, and only links need it

    pairs = [f"{key}={quote(text, safe=_SAFE)}" for key, text in scenario.non_defaults().items()]
    return "?" + "&".join([f"v={VERSION}", *pairs])


def fragment(scenario: Scenario) -> Fragment:
    """The configuration of a scenario's own model, packed: `config=...`."""
    if not scenario.has_own_model:
        return Fragment("")
    if not scenario.model.configuration:
        return Fragment(None, "the model was not read from a configuration")
    # One implementation of bzip2 is everywhere, so that equal models have equal links; builds of zlib differ.
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - only links need it
    from bz2 import compress  # noqa: PLC0415 - only links need it

    text = CARRIED + urlsafe_b64encode(compress(scenario.model.configuration.encode("ascii"))).decode().rstrip("=")
    if len(text) <= MOST_FRAGMENT:
        return Fragment(text)
    reason = f"the configuration takes {len(text):,} characters of a link, more than {MOST_FRAGMENT:,}"
    return Fragment(None, reason)


def encode(scenario: Scenario) -> str:
    """The canonical link of a scenario: its query, and the fragment where one carries its own model.

    A model whose configuration is too long for a link, or has none, is not in it: `fragment` says why.
    """
    carried = fragment(scenario).text
    return query(scenario) + (f"#{carried}" if carried else "")


def query_of(text: str) -> str:
    """The query of a link: of a whole URL, of `?...`, or the bare query itself; the fragment is left off."""
    before_fragment = text.strip().split("#", 1)[0]
    return before_fragment.split("?", 1)[1] if "?" in before_fragment else before_fragment


def model_of(text: str) -> Architecture | None:
    """The model whose configuration a link carries; None for a link without one.

    Raises InvalidInputs when the fragment is damaged, or names every bad field of the configuration.
    """
    carried = text.strip().partition("#")[2]
    if not carried.startswith(CARRIED):
        return None
    whole = read_json(_unpacked(carried.removeprefix(CARRIED)), "config")
    if not isinstance(whole, dict) or "config" not in whole:
        raise InvalidInputs([FieldError("config", "another content", "a configuration, as links carry it")])
    return read(whole["config"], whole.get("quant_config"))


def _unpacked(text: str) -> str:
    from base64 import b64decode  # noqa: PLC0415 - only links need it
    from bz2 import BZ2Decompressor  # noqa: PLC0415 - only links need it

    unpacking = BZ2Decompressor()
    try:
        packed = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        # A few bytes could unpack to gigabytes: no more is unpacked than a configuration may have.
        found = unpacking.decompress(packed, max_length=MOST_TEXT).decode("ascii")
    except (ValueError, OSError):
        found = ""
    if not unpacking.eof or not found:
        given = f"a fragment of {len(text):,} characters that is damaged or cut"
        raise InvalidInputs([FieldError("config", given, "the whole fragment of a link")])
    return found


def decode(
    text: str,
    *,
    model: Architecture | None = None,
    version: int = VERSION,
    upgraders: Mapping[int, Upgrader] = UPGRADERS,
) -> Scenario:
    """The scenario that a link opens, upgraded from older versions; `model` takes the place of the link's own.

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
    inputs = {key: value for key, value in values.items() if key in PLAN_INPUTS}
    try:
        scenario = _opened(text, model, inputs)
    except InvalidInputs as invalid:
        raise InvalidInputs([*errors, *invalid.errors]) from None
    if errors:
        raise InvalidInputs(errors)
    return scenario


def _opened(text: str, model: Architecture | None, inputs: Mapping[str, str]) -> Scenario:
    if model is None:
        try:
            model = model_of(text)
        except InvalidInputs as invalid:
            raise InvalidInputs([*invalid.errors, *problems(inputs)]) from None
    return Scenario(**inputs) if model is None else Scenario.of_model(model, **inputs)


def problems(inputs: Mapping[str, str]) -> list[FieldError]:
    """What is wrong with inputs whose model is not known: every bad value, no contradiction with a model."""
    try:
        PLAN_INPUTS.validate(inputs)
    except InvalidInputs as invalid:
        return invalid.errors
    return []
