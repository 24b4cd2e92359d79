"""The site's Python answers with the same bytes as CPython, and passes the same vectors."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from browser.built_site import ROOT, copy_of_the_site
from conformance import HANDLERS
from enginemem.architecture import model_ids
from enginemem.comparison import ENGINES
from enginemem.hardware import gpu_ids
from enginemem.render.catalogue import gpu_example
from enginemem.scenario import PLAN_INPUTS
from enginemem.web import PARTS, handle
from enginemem.worked import worked_cases
from public_configs import CONFIGS
from wasm.site_python import digests, every_part, node, random_inputs, request

NO_CONFIGURATION = (
    "{",
    '{"a":1,\n}',
    "[1,]",
    "[,]",
    '{"a" 1}',
    '"\x01"',
    '{"a":"\\x"}',
    "nul",
    "[NaN,]",
    '{"a":1,"a":2}',
    "[" * 99,
)
VECTORS = sorted(ROOT / f"tests/vectors/{name}.json" for name in HANDLERS)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    return copy_of_the_site(tmp_path_factory.mktemp("site") / "site")


def same(site: Path, requests: list[str], scratch: Path, *, what: str = "answers") -> list[dict[str, Any]]:
    """CPython's answers, after the site's Python gave the same bytes for each."""
    ours = [handle(asked) for asked in requests]
    theirs = digests(site, requests, scratch, what=what)
    assert len(theirs) == len(ours)
    pairs = zip(requests, ours, theirs, strict=True)
    different = [asked for asked, answer, digest in pairs if hashlib.sha256(answer.encode()).hexdigest() != digest]
    assert different == []
    return [json.loads(answer) for answer in ours]


def test_every_vector_passes_in_the_sites_python(site: Path) -> None:
    files = [path.relative_to(ROOT).as_posix() for path in VECTORS]
    last = node(site, "python", "tests/conformance.py", *files).splitlines()[-1]
    passed, failed = (int(part.split()[0]) for part in last.split(", ")[:2])
    assert (passed > 300, failed) == (True, 0), last


def test_published_scenarios_give_the_same_bytes(site: Path, tmp_path: Path) -> None:
    inputs = [{key: str(value) for key, value in case.scenario.non_defaults().items()} for case in worked_cases()]
    answers = same(site, [asked for given in [{}, *inputs] for asked in every_part(given)], tmp_path)
    assert all(answer["ok"] for answer in answers)


def test_own_models_give_the_same_bytes(site: Path, tmp_path: Path) -> None:
    texts = [*[json.dumps(config) for config in CONFIGS.values()], *NO_CONFIGURATION]
    room = {"gpu": "b200", "tp": "8"}
    answers = same(site, [request(part, inputs=room, config=text) for text in texts for part in PARTS], tmp_path)
    known = Counter([answer["ok"] for answer in answers])
    assert known[True] > 200
    assert known[False] >= len(NO_CONFIGURATION) * len(PARTS)
    assert not any("error" in answer for answer in answers)


def test_random_scenarios_give_the_same_bytes(site: Path, tmp_path: Path) -> None:
    drawn = random_inputs()
    answers = same(site, [request(part, inputs=inputs) for inputs in drawn for part in PARTS], tmp_path)

    whole = [
        json.loads(answer["texts"]["json"]) for answer in answers if answer["ok"] and answer["part"] == "downloads"
    ]
    used = Counter(key for inputs in drawn for key in inputs)
    assert len(drawn) == 1000
    assert len(whole) >= 800
    assert {document["scenario"]["gpu"] for document in whole} == set(gpu_ids())
    assert {document["scenario"]["model"] for document in whole} == set(model_ids())
    assert set(used) == set(PLAN_INPUTS.keys)
    for column in ENGINES:
        assert sum(document["engines"][column]["status"] == "ok" for document in whole) > 100


def test_what_is_no_request_is_refused_with_the_same_bytes(site: Path, tmp_path: Path) -> None:
    asked = ["[]", "{", '"text"', '{"id": 1}', '{"id": "x", "kind": "plan"}', '{"id": 2, "kind": "plan", "part": "no"}']
    assert not any(answer["ok"] for answer in same(site, asked, tmp_path))


def test_bad_links_are_explained_with_the_same_bytes(site: Path, tmp_path: Path) -> None:
    links = ["?v=2", "?v=1&prompt=-3", "?v=1&no_such=1", "?v=1&gpu=h100-sxn", "?%00", "?v=1&prompt=" + "9" * 400]
    assert not any(answer["ok"] for answer in same(site, [request("figures", link=link) for link in links], tmp_path))


def test_pasted_records_give_the_same_bytes(site: Path, tmp_path: Path) -> None:
    good = gpu_example("h100-sxm")
    records = [
        json.dumps(good),
        json.dumps({**good, "cuda_total": {"value": "79"}}),
        "{}",
        "[",
        '{"name": 3}',
        "null",
        "\u00e9",
    ]
    asked = [json.dumps({"id": 9, "kind": "validate_gpu", "record": record}) for record in records]
    answers = same(site, asked, tmp_path, what="records")
    assert [answer["ok"] for answer in answers] == [True, False, False, False, False, False, False]
    assert not any("error" in answer for answer in answers)


def test_the_sites_core_is_the_one_that_is_tested_here() -> None:
    # A guard for this file: the parity is worth nothing when both sides read the same files.
    assert Path(sys.modules[handle.__module__].__file__ or "").is_relative_to(ROOT / "src")
