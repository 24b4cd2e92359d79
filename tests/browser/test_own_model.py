"""The model's search, and a configuration of the reader's own: figures, faults, links, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from browser.calculator import Calculator, answer
from browser.visited import Host
from public_configs import CONFIGS

V3 = json.dumps(CONFIGS["deepseek-ai--DeepSeek-V3"])
ROOM = {"gpu": "h200-sxm", "tp": "8"}
LINK = "?v=1&gpu=h200-sxm&tp=8"
HOSTILE = "<img src=x onerror=alert(1)>"


def shown_options(page: Page) -> list[str]:
    options: list[str] = page.evaluate(
        "() => [...document.querySelectorAll('#in-model option')].filter((one) => !one.hidden).map((one) => one.value)"
    )
    return options


def test_a_search_narrows_the_presets_and_enter_takes_the_first(calculator: Calculator) -> None:
    page = calculator.open().ready().page
    everything = shown_options(page)
    find = page.locator("#em-model-find")
    find.fill("deepseek")
    found = shown_options(page)
    assert 1 < len(found) < len(everything) / 3
    assert sum("deepseek" in one for one in found) >= len(found) - 1, "the chosen preset stays beside them"
    find.press("Enter")
    first = next(one for one in found if "deepseek" in one)
    expect(calculator.control("model")).to_have_value(first)
    calculator.shows(answer(model=first))
    find.fill("<10b")
    assert first not in set(shown_options(page)) - {calculator.control("model").input_value()}
    find.press("Escape")
    assert shown_options(page) == everything


def test_a_pasted_configuration_gives_its_models_figures_and_a_link(calculator: Calculator, host: Host) -> None:
    calculator.open(LINK).ready()
    calculator.bring(V3)
    calculator.shows(answer(config=V3, **ROOM))
    page = calculator.page
    expect(page.locator("#em-config-verdict")).to_contain_text("DeepseekV3ForCausalLM")
    expected = answer(config=V3, **ROOM)["config"]["fragment"]
    expect(page).to_have_url(f"{host.address}{LINK}#{expected}")
    calculator.shows(answer("details", config=V3, **ROOM))
    assert not any("config=" in asked for asked in host.asked), "a configuration went over the line"


def test_a_link_with_a_configuration_opens_its_model(calculator: Calculator) -> None:
    found = answer(config=V3, **ROOM)
    calculator.open(f"{LINK}#{found['config']['fragment']}").ready()
    calculator.shows({**found, "texts": {"describe": found["texts"]["describe"]}})
    expect(calculator.page.locator("#em-config-verdict")).to_contain_text("DeepseekV3ForCausalLM")
    calculator.set("prompt", "4000")
    calculator.shows(answer(config=V3, prompt="4000", **ROOM))


def test_a_configuration_alone_travels_without_inputs(calculator: Calculator) -> None:
    small = json.dumps(CONFIGS["01-ai--Yi-34B"])
    found = answer(config=small)
    calculator.open(f"#{found['config']['fragment']}").ready()
    calculator.shows({**found, "texts": {"describe": found["texts"]["describe"]}})


def test_a_fault_names_its_field_and_the_last_figures_stay(calculator: Calculator) -> None:
    calculator.open().ready()
    bad: dict[str, Any] = {**CONFIGS["01-ai--Yi-34B"], "num_hidden_layers": HOSTILE}
    calculator.bring(json.dumps(bad))
    verdict = calculator.page.locator("#em-config-verdict")
    expect(verdict).to_contain_text("num_hidden_layers")
    expect(verdict).to_contain_text(HOSTILE)
    expect(verdict.locator("img")).to_have_count(0)
    calculator.shows(answer())
    calculator.bring("{")
    expect(verdict).to_contain_text("line 1")
    calculator.page.locator("#em-config-back").click()
    expect(verdict).to_be_empty()
    expect(calculator.page.locator("#em-app")).not_to_have_attribute("data-stale", "")
    calculator.shows(answer())


def test_choosing_a_preset_ends_the_own_model(calculator: Calculator) -> None:
    calculator.open(LINK).ready()
    calculator.bring(V3)
    calculator.shows(answer(config=V3, **ROOM))
    calculator.set("model", "llama-3.1-70b")
    calculator.shows(answer(model="llama-3.1-70b", **ROOM))
    expect(calculator.page.locator("#em-config-text")).to_have_value("")
    assert "#" not in calculator.page.url
    calculator.page.go_back()
    calculator.shows_inputs(ROOM)


def test_files_are_taken_by_their_names(calculator: Calculator, tmp_path: Path) -> None:
    calculator.open(LINK).ready()
    plain = json.dumps(CONFIGS["01-ai--Yi-34B"])
    config, quant = tmp_path / "config.json", tmp_path / "hf_quant_config.json"
    config.write_text(plain)
    quant.write_text(json.dumps({"quantization": {"quant_algo": "nothing-known"}}))
    calculator.page.locator("#em-config > summary").click()
    calculator.page.locator("#em-config-file").set_input_files([config, quant])
    expect(calculator.page.locator("#em-config-verdict")).to_contain_text("hf_quant_config.quantization")
    calculator.page.locator("#em-config-quant").fill("")
    calculator.shows(answer(config=plain, **ROOM))
