"""Under a sub-path everything works as at the root."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from browser.calculator import READY, Calculator, answer
from browser.conftest import Visitor
from browser.visited import Host
from enginemem.scenario import Scenario


def test_under_a_sub_path_edits_links_and_history_work(page: Page, below: Host) -> None:
    calculator = Calculator(page, below.address).open().ready()
    calculator.set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")
    assert page.url == below.address + "?v=1&max_tokens=300"
    page.go_back()
    calculator.shows_everything()
    assert page.url == below.address


def test_under_a_sub_path_pages_lead_to_each_other(page: Page, below: Host) -> None:
    page.goto(f"{below.address}worked/")
    page.locator("main a.em-button", has_text="Open these inputs").nth(1).click()
    assert page.url.startswith(below.address + "?v=1")
    calculator = Calculator(page, below.address)
    calculator.shows(answer(link=calculator.link()))
    for name in ("Worked comparisons", "Method", "Hardware", "Models", "Calculator"):
        page.locator(".md-tabs").get_by_role("link", name=name).click()
        assert page.url.startswith(below.address)
        expect(page.locator("main h1")).to_have_count(1)


def test_under_a_sub_path_a_pasted_record_is_checked(page: Page, below: Host) -> None:
    page.goto(f"{below.address}hardware/")
    page.get_by_role("button", name="Fill in an example").click()
    page.get_by_role("button", name="Check the record").click()
    page.locator("#em-record-answer").get_by_role("link").click(timeout=2 * READY)
    calculator = Calculator(page, below.address)
    calculator.shows(answer(link=calculator.link()))
    assert page.url.startswith(below.address + "?v=1")


def test_under_a_sub_path_it_works_without_network_after_one_visit(visitor: Visitor, below: Host) -> None:
    page, watch = visitor(below)
    watch.allow("ERR_", "Failed to fetch")
    calculator = Calculator(page, below.address).open().ready()
    assert page.evaluate("() => navigator.serviceWorker.ready.then((found) => found.scope)") == below.address
    page.context.set_offline(True)
    page.reload()
    calculator.ready()
    calculator.set("prompt", "1500")
    calculator.shows_everything(**Scenario(prompt="1500").non_defaults())
