"""The browser's door: it answers everything, never raises, and lets no text become markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginemem.comparison import ENGINES
from enginemem.scenario import PLAN_INPUTS
from enginemem.web import PARTS, handle

HOSTILE = "<img src=x onerror=alert(1)>\"'&</script>"
VOID = {"br", "input", "img", "hr"}


def ask(**request: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(handle(json.dumps({"id": 7, "kind": "plan", **request})))
    return answer


class Balance(HTMLParser):
    """Fails on a tag that is closed in the wrong order or never."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs), (tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs), (tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_well_formed(html: str) -> None:
    balance = Balance()
    balance.feed(html)
    balance.close()
    assert balance.open == []


def test_the_default_scenario_fills_every_region() -> None:
    figures, details, charts = (ask(part=part, inputs={}) for part in ("figures", "details", "charts"))
    assert figures["ok"]
    assert figures["id"] == 7
    assert figures["link"] == "?v=1"
    assert figures["inputs"] == {}
    assert {"cards", "strip", "finding", "bars", "table"} <= figures["regions"].keys()
    assert {f"ledger-{column}" for column in ENGINES} | {"launches"} == details["regions"].keys()
    assert {"charts"} == charts["regions"].keys()
    for html in (*figures["regions"].values(), *details["regions"].values(), *charts["regions"].values()):
        assert html
        assert_well_formed(html)


def test_published_counts_stand_in_the_cards() -> None:
    cards = ask(part="figures", inputs={})["regions"]["cards"]
    counts = re.findall(r'data-fig="([a-z-]+)\.running">(\d+)<', cards)
    assert counts == [("vllm", "209"), ("sglang", "121"), ("tensorrt-llm", "113")]


def test_a_link_opens_the_same_figures_as_its_inputs() -> None:
    by_inputs = ask(part="figures", inputs={"max_tokens": "32k", "tp": "2"})
    assert by_inputs["link"] == "?v=1&tp=2&max_tokens=32000"
    by_link = ask(part="figures", link=by_inputs["link"])
    assert by_link["regions"] == by_inputs["regions"]
    assert by_link["inputs"] == {"tp": "2", "max_tokens": "32000"}


def test_bad_inputs_come_back_by_name_with_what_is_allowed() -> None:
    answer = ask(part="figures", inputs={"prompt": "32x", "gpu": "h100", "nonsense": "1"})
    assert not answer["ok"]
    assert answer["link"] is None
    assert {error["field"] for error in answer["errors"]} == {"prompt", "gpu", "nonsense"}
    for error in answer["errors"]:
        assert error["message"]
        assert {"field", "given", "allowed", "suggestion", "message"} == error.keys()


@pytest.mark.parametrize(
    "request_text",
    [
        "", "null", "[]", "1", "{", "{}", '{"kind": "plan"}', '{"kind": "plan", "part": []}', '{"kind": {}}',
        '{"kind": "plan", "part": "figures", "inputs": []}', '{"kind": "plan", "part": "figures", "inputs": {"tp": 1}}',
        '{"id": {}, "kind": "plan", "part": "nope"}', '{"kind": "validate_gpu"}', "[" * 100_000,
        '{"kind": "plan", "part": "figures", "inputs": {"\\ud800": "\\udfff"}}', "x" * 2_000_000, '{"id": ' + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_malformed_requests_are_answered(request_text: str) -> None:
    answer = json.loads(handle(request_text))
    assert answer["ok"] is False
    assert "id" in answer


@settings(max_examples=150, deadline=None)
@given(
    key=st.sampled_from([*PLAN_INPUTS.keys, "v", "", HOSTILE]),
    text=st.one_of(
        st.text(max_size=40), st.just(HOSTILE), st.sampled_from(["auto", "-1", "1e99", "nan", "9" * 30, "0x1"])
    ),
    part=st.sampled_from(sorted(PARTS)),
)
def test_no_text_raises_or_becomes_markup(key: str, text: str, part: str) -> None:
    answer = ask(part=part, inputs={key: text})
    for html in answer.get("regions", {}).values():
        assert "<img" not in html
        assert_well_formed(html)


@pytest.mark.parametrize("field", ["gpu", "model", "vllm.block_size", HOSTILE])
def test_a_hostile_link_is_refused_by_name(field: str) -> None:
    answer = ask(part="figures", link="?v=1&" + field + "=" + HOSTILE.replace("&", "%26").replace("#", "%23"))
    assert not answer["ok"]
    assert answer["errors"]


def test_downloads_are_the_core_own_texts() -> None:
    texts = ask(part="downloads", inputs={})["texts"]
    assert json.loads(texts["json"])["engines"]["vllm"]["running"] == 209
    assert texts["csv"].startswith("row,")
    assert texts["markdown"].count("|") > 20


def test_an_answer_is_ascii_so_that_any_bridge_carries_it() -> None:
    assert handle('{"id": 1, "kind": "plan", "part": "figures", "inputs": {}}').isascii()


def test_differences_name_the_column_they_are_taken_from() -> None:
    table = ask(part="figures", inputs={}, reference="vllm")["regions"]["table"]
    assert "−96 (−45.9 %)" in table
    assert "em-gap" not in ask(part="figures", inputs={}, reference="nobody")["regions"]["table"]
