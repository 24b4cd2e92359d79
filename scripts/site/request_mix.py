"""A mix of requests that walks every path of `web.handle` which may import something: run inside Pyodide.

The standard library of the site holds what this mix needed; what it missed is fetched by the worker's safety net.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from enginemem.architecture import configuration_of, model_facts, model_ids
from enginemem.scenario import PLAN_INPUTS
from enginemem.web import PARTS, handle

RECORD = {"name": "NVIDIA Test", "cuda_total": "79 GiB"}
_BAD = ("h100-smx", "-1", "1.5.2", "3", "1e5", "32k")


def _inputs() -> Iterator[dict[str, str]]:
    yield {}
    yield {"gpu": "h100", "prompt": "many", "no_such_input": "1"}
    for field in PLAN_INPUTS:
        for text in field.choices() if field.choices else _BAD:
            yield {field.key: text}


def plan_requests() -> Iterator[str]:
    """Requests about plans: every choice of every input, bad values, links, and no requests at all."""
    for inputs in _inputs():
        for part in PARTS:
            yield json.dumps({"id": 1, "kind": "plan", "part": part, "inputs": inputs})
    for link in ("?v=1", "?v=1&gpu=h200-sxm&prompt=4000", "?v=9", "?v=1&what=%20"):
        yield json.dumps({"id": 1, "kind": "plan", "part": "figures", "link": link})
    yield from _own_models()
    yield "no JSON"
    yield json.dumps({"kind": "no such kind"})


def _own_models() -> Iterator[str]:
    """Requests with a configuration: of every preset, of faults, and links that carry one."""
    for model_id in model_ids():
        text = json.dumps(configuration_of(model_facts(model_id)))
        for part in PARTS:
            yield json.dumps({"id": 1, "kind": "plan", "part": part, "inputs": {}, "config": text})
        carried = json.loads(handle(json.dumps({"kind": "plan", "part": "link", "config": text})))["config"]["fragment"]
        yield json.dumps({"id": 1, "kind": "plan", "part": "figures", "link": f"?v=1#{carried}"})
    for text in ("{", "[]", '{"model_type": "lama"}', '{"a": 1, "a": NaN}', "[" * 99):
        yield json.dumps({"id": 1, "kind": "plan", "part": "figures", "config": text, "quant_config": "{}"})
    yield json.dumps({"id": 1, "kind": "plan", "part": "figures", "link": "?v=1#config=QlpoOQ"})


def record_requests() -> Iterator[str]:
    """Requests that check a pasted record, which needs pydantic."""
    for record in (json.dumps(RECORD), "{}", "[1", "null"):
        yield json.dumps({"id": 1, "kind": "validate_gpu", "record": record})


def run(requests: Iterator[str]) -> int:
    """Answer every request; the number of those that failed inside, which should be 0."""
    failed = 0
    for request in requests:
        answer = json.loads(handle(request))
        failed += answer.get("error", {}).get("kind") == "internal"
    return failed
