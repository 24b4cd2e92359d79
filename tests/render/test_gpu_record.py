"""A pasted GPU record: good ones become a link, bad ones are answered by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from enginemem.hardware import gpu_ids, load_gpu
from enginemem.link import decode
from enginemem.render.catalogue import gpu_example
from enginemem.units import parse_quantity
from enginemem.web import handle

pytest.importorskip("pydantic")


def check(record: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(handle(json.dumps({"id": 1, "kind": "validate_gpu", "record": record})))
    return answer


def test_the_example_on_the_page_is_a_good_record() -> None:
    answer = check(json.dumps(gpu_example("h100-sxm")))
    assert answer["ok"], answer
    assert decode(answer["link"]).gpu.cuda_total == load_gpu("h100-sxm").cuda_total


@pytest.mark.parametrize("gpu_id", gpu_ids())
def test_every_listed_part_is_accepted_or_refused_by_name(gpu_id: str) -> None:
    gpu = load_gpu(gpu_id)
    answer = check(json.dumps(gpu_example(gpu_id)))
    assert answer["ok"] == (gpu.cuda_total is not None and gpu.compute_capability is not None)
    assert answer["ok"] or {error["field"] for error in answer["errors"]} <= {"cuda_total", "compute_capability"}


def test_own_totals_travel_in_the_link() -> None:
    record = gpu_example("h100-sxm")
    record["name"], record["cuda_total"] = "<b>mine</b>", {**_value(record, "cuda_total"), "value": "80,000 MiB"}
    answer = check(json.dumps(record))
    assert decode(answer["link"]).gpu.cuda_total == parse_quantity("80000MiB")
    assert "<b>" not in answer["regions"]["gpu-record"]


def test_a_part_of_the_same_name_goes_before_one_with_a_nearer_total() -> None:
    record = gpu_example("h100-sxm")
    record["cuda_total"] = {**_value(record, "cuda_total"), "value": "78.5GiB"}
    assert decode(check(json.dumps(record))["link"]).gpu.id == "h100-sxm"


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "{", '{"name": 1}', "x" * 200_000])
def test_what_is_no_record_is_answered(text: str) -> None:
    answer = check(text)
    assert not answer["ok"]
    assert answer["link"] is None
    assert answer["errors"]


def _value(record: dict[str, object], key: str) -> dict[str, object]:
    value = record[key]
    assert isinstance(value, dict)
    return value
