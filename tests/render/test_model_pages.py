"""The pages about models: every preset's cost in every engine, a reason for each gap, tables that sort and filter."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from enginemem.architecture import load_model, model_ids
from enginemem.comparison import ENGINES
from enginemem.render.catalogue import cached_shape, kv_bytes_per_token, model_table
from enginemem.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.site.model_costs import IMAGINED, costs_of, model_costs  # noqa: E402

DENSE = ("llama-3.1-8b", "qwen3-14b", "mixtral-8x7b", "phi-4")


@pytest.mark.parametrize("model_id", DENSE)
def test_full_attention_costs_the_same_everywhere_and_nothing_besides(model_id: str) -> None:
    for found in costs_of(model_id).values():
        assert (found.per_token, found.per_request) == (kv_bytes_per_token(load_model(model_id)), 0)


def test_a_latent_row_costs_its_width() -> None:
    for found in costs_of("deepseek-v3").values():
        assert found.per_token == 61 * 576 * 2


def test_recurrent_states_are_bytes_of_a_request() -> None:
    costs = costs_of("qwen3.5-9b")
    # Eight attention layers of 4 heads, K and V of 256, two bytes an element.
    assert {found.per_token for found in costs.values()} == {8 * 4 * 2 * 256 * 2}
    assert costs["vllm"].per_request
    assert costs["sglang"].per_request


def test_the_imagined_part_is_one_that_the_calculator_takes() -> None:
    assert Scenario(**IMAGINED).tp == 1


def test_every_preset_is_in_the_table_and_every_gap_has_a_reason() -> None:
    page = model_costs()
    assert page.table.count("<tr>") == 1 + len(model_ids())
    assert page.table.count('<th scope="col"') == 3 + 2 * len(ENGINES)
    gaps = page.table.count("Not modeled</td>")
    assert gaps == 2 * len(page.unknown)
    assert all(": " in line and not line.endswith(": ") for line in page.unknown)
    assert set(page.families) == {load_model(model_id).family for model_id in model_ids()}


def test_figures_sort_by_the_number_that_they_show() -> None:
    for value, text in re.findall(r'<td data-value="([\d.]+)">([\d,.]+)</td>', model_costs().table):
        assert float(value) == pytest.approx(float(text.replace(",", "")), rel=1e-6)


def test_the_facts_of_a_latent_model_are_its_row() -> None:
    assert cached_shape(load_model("deepseek-v3")) == (1, 576)
    assert cached_shape(load_model("llama-3.1-8b")) == (8, 128)
    assert cached_shape(load_model("nemotron-3-nano")) == (2, 128)
    assert "KV bytes a token, bf16" in model_table()
