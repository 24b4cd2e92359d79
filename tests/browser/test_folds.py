"""An engine's fields come with their fold, whenever it opens, and nothing that was typed early is lost."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from browser.calculator import Calculator, answer
from browser.conftest import Visitor
from browser.visited import Host
from enginemem.comparison import ENGINES
from enginemem.scenario import PLAN_INPUTS


def test_an_engines_fields_come_when_its_fold_opens(calculator: Calculator) -> None:
    """Closed, a fold holds no field; opened by hand or by a link it has all, with what the engine resolves today."""
    page = calculator.page
    keys = {engine: [field.key for field in PLAN_INPUTS if field.section == engine] for engine in ENGINES}
    calculator.open().ready()
    expect(page.locator("#em-form .em-knobs [data-key]")).to_have_count(0)
    calculator.set("gpu", "h200-sxm")
    calculator.shows(answer(gpu="h200-sxm"))
    page.locator("#em-knobs-sglang > summary").click()
    expect(page.locator("#em-form .em-knobs [data-key]")).to_have_count(len(keys["sglang"]))
    for key in keys["sglang"]:
        expect(calculator.control(key)).to_have_value(PLAN_INPUTS[key].default)
    calculator.shows_everything(gpu="h200-sxm")
    calculator.open("?v=1&vllm.max_num_seqs=64").ready()
    expect(calculator.control("vllm.max_num_seqs")).to_be_visible()
    expect(calculator.control("vllm.max_num_seqs")).to_have_value("64")
    expect(page.locator("#em-form .em-knobs [data-key]")).to_have_count(len(keys["vllm"]))
    calculator.shows_everything(**{"vllm.max_num_seqs": "64"})


def held_back(page: Page) -> list[Route]:
    """The request for the form's script, which waits here until the test lets it go."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/form.js", hold)
    return held


def let_go(page: Page, held: list[Route]) -> None:
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()


def test_a_fold_opened_before_the_scripts_are_there_fills(host: Host, visitor: Visitor) -> None:
    page, _ = visitor(host)
    held = held_back(page)
    calculator = Calculator(page, host.address).open()
    page.locator("#em-knobs-vllm > summary").click()
    expect(calculator.row("vllm.max_num_seqs")).to_have_count(0)
    calculator.comes_to("() => document.querySelector('#em-knobs-vllm').open")
    let_go(page, held)
    expect(calculator.control("vllm.max_num_seqs")).to_be_visible()


def test_what_was_typed_before_the_scripts_came_stays_when_its_field_is_left(host: Host, visitor: Visitor) -> None:
    page, _ = visitor(host)
    held = held_back(page)
    calculator = Calculator(page, host.address).open()
    calculator.set("max_tokens", "600")
    let_go(page, held)
    page.wait_for_selector("#em-loader[data-state]", state="attached")
    calculator.set("prompt", "1000")
    calculator.shows_everything(max_tokens="600", prompt="1000")


def test_a_message_in_a_closed_fold_is_shown(calculator: Calculator) -> None:
    """An edit elsewhere is answered by a message beside a knob: the fold that holds it opens."""
    page = calculator.open().ready().page
    calculator.unfold("vllm.max_num_seqs")
    calculator.control("vllm.max_num_seqs").fill("lots")
    expect(calculator.row("vllm.max_num_seqs").locator(".em-error")).to_be_visible()
    page.locator("#em-knobs-vllm > summary").click()
    expect(calculator.row("vllm.max_num_seqs")).to_be_hidden()
    calculator.control("prompt").fill("3000")
    expect(calculator.row("vllm.max_num_seqs").locator(".em-error")).to_be_visible()
