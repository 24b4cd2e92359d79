"""A model of the user's own: `config.json` as a text or a mapping, checked, named, and reduced to what was read of it.

The reduced configuration is what a link carries: the parser makes the same facts of it as of the whole file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from enginemem.architecture import Architecture
from enginemem.hf_config import parse
from enginemem.inputs import FieldError, InvalidInputs

MOST_TEXT = 500_000
"""Characters of one file; the largest published ones have about 70,000."""
MOST_DEPTH = 32
_MOST_DIGITS = 40
_MOST_NAME = 80
_MOST_ERRORS = 20
_NAME = "_name_or_path"
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
# A quote that is never closed takes the rest of the text, so that no character is looked at twice.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


class _Repeated(dict[str, Any]):
    """An object that has a field more than once; `names` says which."""

    names: tuple[str, ...] = ()


class _Seen(dict[str, Any]):
    """An object of a configuration that remembers which of its fields were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def _watched(self, key: str) -> Any:
        self.asked.add(key)
        value = super().get(key)
        if isinstance(value, Mapping) and not isinstance(value, _Seen):
            self[key] = value = _Seen(value)
        elif isinstance(value, (list, tuple)) and any(type(item) is dict for item in value):
            self[key] = value = [_Seen(item) if type(item) is dict else item for item in value]
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """As of a dict."""
        return self._watched(key) if super().__contains__(key) else default

    def __getitem__(self, key: str) -> Any:
        return self._watched(key) if super().__contains__(key) else super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            self.asked.add(str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self.asked.update(self.keys())
        return super().__iter__()

    def reduced(self) -> dict[str, Any]:
        """The fields that were asked for, in the file's order."""
        return {key: _reduced(value) for key, value in self.items() if key in self.asked}


def _reduced(value: Any) -> Any:
    if isinstance(value, _Seen):
        return value.reduced()
    if isinstance(value, list):
        return [item.reduced() if isinstance(item, _Seen) else item for item in value]
    return value


def read(config: object, hf_quant_config: object = None) -> Architecture:
    """The Architecture of a configuration, with the configuration that its links carry.

    Raises InvalidInputs (every bad field) or UnknownArchitecture.
    """
    watched = [_Seen(given) if isinstance(given, Mapping) else given for given in (config, hf_quant_config)]
    model = parse(*watched)
    named = watched[0].get(_NAME) if isinstance(watched[0], _Seen) else None
    name = short_name(named) if isinstance(named, str) else ""
    return model._replace(
        name=name or model.name,
        hub_id=name if _HUB_ID.fullmatch(name) else "",
        configuration=_carried(*watched, name=name),
    )


def _carried(config: object, quant: object, *, name: str) -> str:
    """What a link holds, as JSON of ASCII."""
    import json  # noqa: PLC0415 - importing the package must be quick

    own = config.reduced() if isinstance(config, _Seen) else {}
    own.pop(_NAME, None)
    whole = {"config": {**own, _NAME: name} if name else own}
    if isinstance(quant, _Seen):
        # Empty where it does not count: the link then says, as the files do, that there was one.
        whole["quant_config"] = quant.reduced()
    try:
        return json.dumps(whole, separators=(",", ":"), default=_plain)
    except RecursionError:
        raise InvalidInputs([FieldError("config", "lists nested too deep", f"at most {MOST_DEPTH} deep")]) from None


def _plain(value: object) -> object:
    """What JSON has no form for: other mappings; what else a list holds there was passed over by the parser."""
    return dict(value) if isinstance(value, Mapping) else None


def short_name(text: str) -> str:
    """A model's name from `_name_or_path`: a hub id as it is, of any other path its last part; short and printable."""
    plain = "".join([mark if mark.isprintable() else " " for mark in text[:4096]]).strip()
    if _HUB_ID.fullmatch(plain) is None:
        plain = plain.replace("\\", "/").rstrip("/").rpartition("/")[2].strip()
    return " ".join(plain.split())[:_MOST_NAME]


@lru_cache(maxsize=4)
def read_texts(config: str, quant_config: str | None = None) -> Architecture:
    """The Architecture of a pasted `config.json` and, where there is one, `hf_quant_config.json`.

    Raises InvalidInputs that names what is wrong with the texts, or every bad field.
    """
    errors: list[FieldError] = []
    found: list[object] = []
    for text, name in ((config, "config"), (quant_config, "hf_quant_config")):
        try:
            found.append(None if text is None else read_json(text, name))
        except InvalidInputs as invalid:
            errors += invalid.errors
    if errors:
        raise InvalidInputs(errors)
    return read(*found)


def read_json(text: str, name: str) -> object:
    """The JSON value of a text; `name` is how errors call it.

    Raises InvalidInputs for what is no JSON, too long or too deep, and for fields given twice. NaN and Infinity, which
    some files have, are read as such.
    """
    if len(text) > MOST_TEXT:
        _refuse(name, f"a text of {len(text):,} characters", f"at most {MOST_TEXT:,} characters")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        _refuse(name, "an empty text", "the text of a config.json")
    if _depth(text) > MOST_DEPTH:
        _refuse(
            name, f"a text nested more than {MOST_DEPTH} deep", f"objects and lists nested at most {MOST_DEPTH} deep"
        )
    value = _parsed(text, name)
    errors = list(islice(_repeated(value, name), _MOST_ERRORS))
    if errors:
        raise InvalidInputs(errors)
    return value


def _refuse(name: str, given: str, allowed: str) -> None:
    raise InvalidInputs([FieldError(name, given, allowed)])


def _depth(text: str) -> int:
    """How deep brackets nest, outside of strings: asked before the JSON parser, which would recurse that deep."""
    depth = deepest = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest


def _parsed(text: str, name: str) -> object:
    import json  # noqa: PLC0415 - importing the package must be quick

    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_whole)
    except json.JSONDecodeError as error:
        at = _place(text, error.pos)
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        _refuse(name, f"a text that is no JSON from line {line}, column {column} on", "JSON")
        raise


def _place(text: str, at: int) -> int:
    """Where a fault is. Python 3.13 and newer point at the comma before a closing bracket, older ones at the bracket."""
    after = text[at + 1 :].lstrip(" \t\r\n") if text[at : at + 1] == "," else ""
    return len(text) - len(after) if after[:1] in ("]", "}") else at


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    several = _Repeated(found)
    several.names = tuple([key for key, times in Counter([key for key, _ in pairs]).items() if times > 1])
    return several


def _whole(text: str) -> int | float:
    # Beyond every size: as a float it is refused where a field is read, and costs nothing where it is not.
    return int(text) if len(text) <= _MOST_DIGITS else float(text)


def _repeated(value: object, path: str) -> Iterator[FieldError]:
    """The fields that are given twice."""
    if isinstance(value, dict):
        if isinstance(value, _Repeated):
            for name in value.names:
                yield FieldError(f"{path}.{name}", "a field that is there twice", "one value")
        for key, item in value.items():
            yield from _repeated(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated(item, f"{path}[{index}]")
