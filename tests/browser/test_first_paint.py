"""Without JavaScript the page holds the whole result of the default inputs."""

from __future__ import annotations

from playwright.sync_api import expect

from browser.calculator import COUNTS, Calculator, answer
from browser.conftest import Visitor
from browser.visited import Host
from enginemem.scenario import PLAN_INPUTS


def test_without_javascript_the_default_scenario_is_there_in_full(host: Host, visitor: Visitor) -> None:
    page, _ = visitor(host, java_script_enabled=False)
    calculator = Calculator(page, host.address).open()
    for engine, count in COUNTS.items():
        expect(page.locator(f'[data-region="cards"] [data-fig="{engine}.running"]')).to_have_text(count)
    for part in ("figures", "details", "charts"):
        calculator.shows(answer(part))
    for region in ("cards", "finding", "bars", "table", "charts", "launches"):
        expect(calculator.region(region)).to_be_visible()
    expect(page.locator("#em-form > noscript p")).to_be_visible()
    for field in PLAN_INPUTS:
        expect(calculator.control(field.key)).to_have_value(field.default)


def test_without_javascript_a_ledger_opens(host: Host, visitor: Visitor) -> None:
    page, _ = visitor(host, java_script_enabled=False)
    Calculator(page, host.address).open()
    page.locator("#em-panel-vllm > summary").click()
    expect(page.locator('[data-region="ledger-vllm"] .em-ledger').first).to_be_visible()


def test_every_page_reads_without_javascript(host: Host, visitor: Visitor) -> None:
    page, _ = visitor(host, java_script_enabled=False)
    for path, words in (
        ("worked/", "Why each engine moves"),
        ("method/", "How to disprove a figure"),
        ("hardware/", "nvidia-smi, GiB"),
        ("models/", "KV bytes a token, bf16"),
    ):
        page.goto(host.address + path)
        expect(page.locator("main")).to_contain_text(words)
        expect(page.locator("main h1")).to_have_count(1)
