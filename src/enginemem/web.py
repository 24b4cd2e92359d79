"""The only door that the browser knows: `handle(request) -> answer`, JSON text both ways. It never raises.

Everything that the page shows is made here, escaped; the page's scripts only put strings in their places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from enginemem.columns import kept_column
from enginemem.comparison import ENGINES, Comparison, compare
from enginemem.configuration import read_texts
from enginemem.inputs import FieldError, InvalidInputs
from enginemem.link import CARRIED, decode, fragment, problems, query
from enginemem.render.answer import announcement, cards, describe, finding, strip
from enginemem.render.auto import auto_texts
from enginemem.render.bars import bars
from enginemem.render.charts import charts
from enginemem.render.comparison_table import comparison_table
from enginemem.render.launches import launches
from enginemem.render.ledger_html import heading, panel
from enginemem.render.own_model import faults, sentence, verdict
from enginemem.render.record import record_verdict
from enginemem.render.tables import comma_separated, markdown
from enginemem.scenario import PLAN_INPUTS, Scenario

Json = dict[str, Any]
_MAX_REQUEST = 4_000_000
"""Characters: two files of the most that is read, each of their quotes escaped."""


class BadRequest(ValueError):
    """A request that is not one: the message says what is missing."""


def handle(request: str) -> str:
    """The answer to one request, as JSON text of ASCII. Unknown requests and inner errors answer `ok: false`."""
    identity: object = None
    try:
        asked = _read(request)
        given = asked.get("id")
        identity = given if isinstance(given, int) else None
        answer = _answer(asked)
    except BadRequest as bad:
        answer = {"ok": False, "error": {"kind": "bad_request", "message": str(bad)}}
    except Exception as error:  # the page must hear of every failure, and no failure may end the worker
        answer = {"ok": False, "error": {"kind": "internal", "message": f"{type(error).__name__}: {error}"[:400]}}
    return json.dumps({"id": identity, **answer})


def _read(request: str) -> Json:
    if len(request) > _MAX_REQUEST:
        raise BadRequest("the request is too long")
    try:
        asked = json.loads(request)
    except (ValueError, RecursionError):
        raise BadRequest("the request is no JSON") from None
    if not isinstance(asked, dict):
        raise BadRequest("the request is no object")
    return asked


def _answer(asked: Json) -> Json:
    kind = asked.get("kind")
    if kind == "plan":
        return _plan(asked)
    if kind == "validate_gpu":
        return _validate_gpu(asked)
    raise BadRequest(f"unknown kind {kind!r:.80}")


def _plan(asked: Json) -> Json:
    part = asked.get("part")
    if not isinstance(part, str) or part not in PARTS:
        raise BadRequest(f"unknown part {part!r:.80}")
    try:
        scenario = _scenario(asked)
    except InvalidInputs as invalid:
        refused = {"ok": False, "kind": "plan", "part": part, "errors": errors(invalid), "link": None}
        return {**refused, "config": refused_config(invalid)} if _brings_config(asked) else refused
    regions, texts = PARTS[part](scenario, asked)
    answer = {
        "ok": True,
        "kind": "plan",
        "part": part,
        "link": query(scenario),
        "inputs": scenario.non_defaults(),
        "regions": regions,
        "texts": texts,
    }
    return {**answer, "config": accepted_config(scenario, asked)} if scenario.has_own_model else answer


def _text(asked: Json, name: str) -> str | None:
    """An optional text of a request; an empty one counts as none."""
    text = asked.get(name)
    if text is not None and not isinstance(text, str):
        raise BadRequest(f"{name} is no text")
    return text or None


def _brings_config(asked: Json) -> bool:
    link = asked.get("link")
    pasted = _text(asked, "config") is not None or _text(asked, "quant_config") is not None
    return pasted or (isinstance(link, str) and link.partition("#")[2].startswith(CARRIED))


def _scenario(asked: Json) -> Scenario:
    link, inputs = asked.get("link"), asked.get("inputs", {})
    if not isinstance(inputs, dict) or not all(isinstance(text, str) for text in inputs.values()):
        raise BadRequest("inputs is no object of texts")
    config, quant = _text(asked, "config"), _text(asked, "quant_config")
    if config is None and quant is not None:
        raise InvalidInputs([FieldError("hf_quant_config", "a text", "beside a config.json only"), *problems(inputs)])
    if config is None:
        return decode(link) if isinstance(link, str) else Scenario(**inputs)
    try:
        model = read_texts(config, quant)
    except InvalidInputs as invalid:
        raise InvalidInputs([*invalid.errors, *problems(inputs)]) from None
    return decode(link, model=model) if isinstance(link, str) else Scenario.of_model(model, **inputs)


def accepted_config(scenario: Scenario, asked: Json) -> Json:
    """What the page shows and keeps of a user's own model.

    `fragment` goes behind the link's `#`, or is null and `note` says why; `files` are the texts of the two files as the
    link carried them, for a page that was opened with one.
    """
    carried = fragment(scenario)
    answer = {
        "ok": True,
        "name": scenario.model.name,
        "verdict": verdict(scenario.model),
        "fragment": carried.text,
        "note": f"The link does not carry this model: {carried.reason}." if carried.text is None else "",
    }
    if _text(asked, "config") is not None:
        return answer
    files = json.loads(scenario.model.configuration)
    return {**answer, "files": {name: json.dumps(content, indent=1) for name, content in files.items()}}


def refused_config(invalid: InvalidInputs) -> Json:
    """The faults of a configuration as the page shows them; an empty verdict where only other inputs are at fault."""
    own = [error for error in invalid.errors if is_of_config(error.field)]
    return {"ok": not own, "verdict": faults(own) if own else "", "fragment": None, "note": ""}


def is_of_config(field: str) -> bool:
    """Whether an error is about a pasted file."""
    return field.partition(".")[0] in ("config", "hf_quant_config")


def errors(invalid: InvalidInputs) -> list[Json]:
    """Every bad field, each with a sentence that the page shows beside it."""
    return [{**error._asdict(), "message": message(error)} for error in invalid.errors]


_LONG_LIST = 160
_NO_FIELDS = ("v", "link", "record")


def message(error: FieldError) -> str:
    """What was given and what is allowed, in two short sentences."""
    hint = f" Did you mean {error.suggestion}?" if error.suggestion else ""
    if error.field not in PLAN_INPUTS and error.field not in _NO_FIELDS and error.allowed.startswith("one of "):
        return f"no input has this name.{hint}"
    if hint and len(error.allowed) > _LONG_LIST:
        return f"{error.given} is not allowed.{hint}"
    return sentence(error)


@lru_cache(maxsize=4)
def _compared(scenario: Scenario) -> Comparison:
    return compare(scenario, column_of=kept_column)


Filled = tuple[dict[str, str], dict[str, str]]
"""Regions and texts by name."""


def figures_part(scenario: Scenario, asked: Mapping[str, Any]) -> Filled:
    """What must follow a key at once: counts, finding, bars, table, and what `auto` stands for."""
    comparison = _compared(scenario)
    reference = asked.get("reference")
    regions = {
        "cards": cards(comparison),
        "strip": strip(comparison),
        "finding": finding(comparison),
        "bars": bars(comparison),
        "table": comparison_table(comparison, reference=reference if isinstance(reference, str) else None),
    }
    for column in ENGINES:
        regions[f"heading-{column}"] = heading(column, comparison)
    texts = {"describe": describe(scenario), "announce": announcement(comparison), **auto_texts(comparison)}
    return regions, texts


def details_part(scenario: Scenario, _asked: Mapping[str, Any]) -> Filled:
    """What may follow a moment later: ledgers and launch commands."""
    comparison = _compared(scenario)
    regions = {f"ledger-{column}": panel(comparison, column) for column in ENGINES}
    regions["launches"] = launches(comparison)
    return regions, {}


def charts_part(scenario: Scenario, _asked: Mapping[str, Any]) -> Filled:
    """The pictures, which take many plans: last, so that a key need not wait for the ledgers too."""
    return {"charts": charts(_compared(scenario))}, {}


def downloads_part(scenario: Scenario, _asked: Mapping[str, Any]) -> Filled:
    """The comparison as Markdown, CSV and JSON, made when somebody asks for one of them."""
    comparison = _compared(scenario)
    return {}, {
        "markdown": markdown(comparison),
        "csv": comma_separated(comparison),
        "json": comparison.to_json(indent=1) + "\n",
    }


def link_part(_scenario: Scenario, _asked: Mapping[str, Any]) -> Filled:
    """Nothing but the link itself: the inputs are checked and the answer carries it."""
    return {}, {}


PARTS: Mapping[str, Callable[[Scenario, Mapping[str, Any]], Filled]] = {
    "figures": figures_part,
    "details": details_part,
    "charts": charts_part,
    "downloads": downloads_part,
    "link": link_part,
}


def _validate_gpu(asked: Json) -> Json:
    record = asked.get("record")
    if not isinstance(record, str):
        raise BadRequest("record is no text")
    from enginemem.gpu_record import check_record  # noqa: PLC0415 - pydantic is loaded for this request only

    found = check_record(record)
    return {
        "ok": not found.errors,
        "kind": "validate_gpu",
        "errors": [{**error._asdict(), "message": message(error)} for error in found.errors],
        "link": found.link,
        "regions": {"gpu-record": record_verdict(found.name, found.like, found.link, found.errors)},
        "texts": {},
    }
