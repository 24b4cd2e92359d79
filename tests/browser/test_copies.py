"""What the buttons copy and save is what Python makes of the same inputs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.calculator import Calculator, answer
from browser.visited import Host
from enginemem.comparison import ENGINES, compare
from enginemem.launch import launch
from enginemem.release import load_release
from enginemem.scenario import Scenario

INPUTS = {
    "prompt": "6000",
    "runtime": "2.5GB",
    "vllm.max_num_seqs": "96",
    "sglang.page_size": "64",
    "tensorrt-llm.max_batch_size": "80",
}


def clipboard(page: Page) -> str:
    return str(page.evaluate("() => navigator.clipboard.readText()"))


@pytest.fixture
def filled(calculator: Calculator) -> Calculator:
    calculator.open(Scenario(**INPUTS).link())
    calculator.shows_everything(**INPUTS)
    calculator.page.evaluate("() => navigator.clipboard.writeText('nothing was copied')")
    return calculator


def test_markdown_is_copied(filled: Calculator) -> None:
    button = filled.page.locator('[data-action="markdown"]')
    button.click()
    expect(button).to_have_attribute("data-said", "Copied")
    text = clipboard(filled.page)
    assert text == answer("downloads", **INPUTS)["texts"]["markdown"]
    assert "| vLLM" in text


def save(page: Page, action: str, folder: Path) -> tuple[str, str]:
    with page.expect_download() as started:
        page.locator(f'[data-action="{action}"]').click()
    target = folder / started.value.suggested_filename
    started.value.save_as(target)
    return target.name, target.read_bytes().decode()


def test_json_is_saved(filled: Calculator, tmp_path: Path) -> None:
    name, text = save(filled.page, "json", tmp_path)
    assert name == "enginemem.json"
    assert text == answer("downloads", **INPUTS)["texts"]["json"]
    assert text == compare(Scenario(**INPUTS)).to_json(indent=1) + "\n"
    assert json.loads(text)


def test_csv_is_saved(filled: Calculator, tmp_path: Path) -> None:
    name, text = save(filled.page, "csv", tmp_path)
    assert name == "enginemem.csv"
    assert text == answer("downloads", **INPUTS)["texts"]["csv"]
    lengths = {len(row) for row in csv.reader(io.StringIO(text))}
    assert len(lengths) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_launch_command_is_copied_with_its_knobs(filled: Calculator, engine: str) -> None:
    button = filled.page.locator(f'[data-copy="em-launch-{engine}"]')
    button.click()
    expect(button).to_have_attribute("data-said", "Copied")
    text = clipboard(filled.page)
    assert text == launch(Scenario(**INPUTS), load_release(engine)).command
    assert {"vllm": "96", "sglang": "64", "tensorrt-llm": "80"}[engine] in text


def test_before_any_edit_the_link_of_the_defaults_is_copied(calculator: Calculator, host: Host) -> None:
    calculator.open()
    button = calculator.page.locator('[data-action="link"]')
    expect(button).to_be_enabled()
    button.click()
    expect(button).to_have_attribute("data-said", "Copied")
    assert clipboard(calculator.page) == host.address + "?v=1"


def test_the_worked_page_copies_its_python_and_command(page: Page, host: Host) -> None:
    page.goto(f"{host.address}worked/")
    for button in page.locator("main [data-copy]").all():
        code = page.locator(f"#{button.get_attribute('data-copy')}")
        button.click()
        expect(button).to_have_attribute("data-said", "Copied")
        assert clipboard(page) == code.text_content()
