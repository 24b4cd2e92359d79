"""Everybody can read and use it: axe on every page, the keyboard alone, the narrowest screen."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from browser.built_site import ROOT
from browser.calculator import READY, Calculator, answer
from browser.conftest import DESKTOP, PHONE
from browser.visited import PAGES, Host
from public_configs import CONFIGS

AXE = ROOT / "node_modules/axe-core/axe.min.js"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SIZES = (DESKTOP, PHONE)


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.is_file():
        pytest.fail("axe-core is not installed: run `npm ci`.", pytrace=False)
    return AXE.read_text("utf-8")


def violations(page: Page, axe: str) -> list[str]:
    """What axe finds in the page as it stands, a line a place."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate(
        "() => axe.run({ resultTypes: ['violations'] }).then((all) => all.violations)"
    )
    return [f"{item['id']}: {node['target']} {node['html'][:120]}" for item in found for node in item["nodes"]]


def in_every_light(page: Page, axe: str) -> dict[str, list[str]]:
    """axe in light and dark, wide and narrow."""
    found: dict[str, list[str]] = {}
    for scheme in SCHEMES:
        for size in SIZES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.set_viewport_size(size)
            found[f"{scheme} at {size['width']}"] = violations(page, axe)
    return {where: lines for where, lines in found.items() if lines}


def open_folds(page: Page) -> None:
    page.evaluate("() => document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })")


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(page: Page, host: Host, axe: str, path: str) -> None:
    page.goto(host.address + path)
    if path == "":
        Calculator(page, host.address).ready()
    open_folds(page)
    assert in_every_light(page, axe) == {}


def test_axe_finds_nothing_beside_errors_changes_and_differences(calculator: Calculator, axe: str) -> None:
    calculator.open("?v=1&gpu=l4&vllm.max_num_seqs=64").ready()
    page = calculator.page
    page.locator('[name="em-reference"][value="vllm"]').check()
    calculator.set("max_tokens", "500")
    calculator.shows(answer(reference="vllm", gpu="l4", max_tokens="500", **{"vllm.max_num_seqs": "64"}))
    calculator.set("prompt", "many")
    expect(calculator.row("prompt").locator(".em-error")).not_to_be_empty()
    assert in_every_light(page, axe) == {}


def test_axe_finds_nothing_where_a_link_is_refused(calculator: Calculator, axe: str) -> None:
    calculator.open("?v=1&prompt=lots")
    expect(calculator.page.locator("#em-problem")).to_be_visible(timeout=READY)
    assert in_every_light(calculator.page, axe) == {}


FAR = """() => {
  const width = document.documentElement.clientWidth;
  const inBox = (element) => {
    for (let box = element.parentElement; box; box = box.parentElement) {
      if (getComputedStyle(box).overflowX !== "visible" && box !== document.body) return true;
    }
    return false;
  };
  const far = [...document.querySelectorAll("main *, header *, footer *")].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.right > width + 1 && element.checkVisibility() && !inBox(element);
  });
  const over = document.documentElement.scrollWidth - width;
  return { over, far: far.slice(0, 5).map((element) => element.outerHTML.slice(0, 160)) };
}"""


@pytest.mark.parametrize("path", PAGES)
def test_nothing_overflows_at_320_pixels(page: Page, host: Host, path: str) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(host.address + path)
    open_folds(page)
    assert page.evaluate(FAR) == {"over": 0, "far": []}


def test_long_results_do_not_overflow_at_320_pixels(calculator: Calculator) -> None:
    calculator.page.set_viewport_size({"width": 320, "height": 640})
    inputs = {
        "gpu": "b200",
        "tp": "8",
        "prompt": "1",
        "max_tokens": "1",
        "mean_output": "1",
        "vllm.max_num_seqs": "1000000",
    }
    calculator.open("?v=1&" + "&".join(f"{key}={value}" for key, value in inputs.items()))
    calculator.shows_everything(**inputs)
    calculator.page.locator('[name="em-reference"][value="sglang"]').check()
    open_folds(calculator.page)
    assert calculator.page.evaluate(FAR) == {"over": 0, "far": []}
    calculator.set("prompt", "<not a number, and a long one that no line of this width can hold>" * 3)
    expect(calculator.row("prompt").locator(".em-error")).not_to_be_empty()
    assert calculator.page.evaluate(FAR) == {"over": 0, "far": []}


FOCUSED = """() => {
  const element = document.activeElement;
  const box = element.getBoundingClientRect();
  // The theme marks the label of its hidden switch, and opens the search under the field that has the focus.
  const marked = element.matches(".md-option") ? element.nextElementSibling : element;
  const style = getComputedStyle(marked);
  return {
    name: element.id || element.dataset.action || element.dataset.reset || element.textContent.trim().slice(0, 30),
    inForm: element.closest("#em-form") !== null,
    tag: element.tagName,
    x: box.x, y: box.y + window.scrollY, top: box.top, bottom: box.bottom, height: box.height,
    marked: style.outlineStyle !== "none" || style.boxShadow !== "none" || element.matches(".md-search__input"),
    shown: box.bottom > 0 && box.top < window.innerHeight && element.checkVisibility(),
  };
}"""


def tab_stops(page: Page, count: int) -> Iterable[dict[str, Any]]:
    """What the Tab key reaches, in order."""
    for _ in range(count):
        page.keyboard.press("Tab")
        yield page.evaluate(FOCUSED)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_tab_order_of_the_form_follows_the_eye(calculator: Calculator, size: ViewportSize) -> None:
    page = calculator.page
    page.set_viewport_size(size)
    calculator.open().ready()
    first = calculator.control("gpu")
    first.focus()
    places = page.evaluate("""() => {
      const form = document.getElementById("em-form");
      const stops = [...form.querySelectorAll("input, select, summary")];
      return stops.filter((element) => element.checkVisibility()).map((element) => {
        const box = element.getBoundingClientRect();
        const scroll = form.querySelector(".em-form-scroll").scrollTop;
        return { name: element.id || element.textContent.trim().slice(0, 30), x: box.x, y: box.y + scroll };
      });
    }""")
    by_eye = [place["name"] for place in sorted(places, key=lambda place: (round(place["y"] / 12), place["x"]))]
    reached = [first.get_attribute("id"), *[stop["name"] for stop in tab_stops(page, len(by_eye) - 1)]]
    assert reached == by_eye


def test_every_tab_stop_shows_that_it_has_the_focus(calculator: Calculator) -> None:
    calculator.open().ready()
    stops = list(tab_stops(calculator.page, 44))
    assert len({stop["name"] for stop in stops}) > 30
    assert [stop["name"] for stop in stops if not stop["shown"]] == []
    assert [stop["name"] for stop in stops if not stop["marked"]] == []


def tab_to(page: Page, selector: str, limit: int = 120) -> None:
    """Go to an element by the Tab key alone."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the Tab key does not reach {selector}")


def test_by_keyboard_alone_inputs_are_set_folds_open_and_the_link_is_copied(calculator: Calculator) -> None:
    page = calculator.open().ready().page
    tab_to(page, "#in-max_tokens")
    page.keyboard.press("Control+a")
    page.keyboard.type("300")
    calculator.shows(answer(max_tokens="300"))
    tab_to(page, "#em-knobs-sglang > summary")
    page.keyboard.press("Enter")
    tab_to(page, "#in-sglang-page_size")
    page.keyboard.type("64")
    inputs = {"max_tokens": "300", "sglang.page_size": "64"}
    calculator.shows_everything(**inputs)
    tab_to(page, '[data-action="link"]')
    page.keyboard.press("Enter")
    expect(page.locator('[data-action="link"]')).to_have_attribute("data-said", "Copied")
    assert str(page.evaluate("() => navigator.clipboard.readText()")).endswith(
        "?v=1&max_tokens=300&sglang.page_size=64"
    )
    tab_to(page, "#em-panel-sglang > summary")
    page.keyboard.press("Enter")
    expect(calculator.region("ledger-sglang")).to_be_visible()
    tab_to(page, '[data-region="ledger-sglang"] a')
    tab_to(page, '[data-copy="em-launch-vllm"]')
    page.keyboard.press("Enter")
    expect(page.locator('[data-copy="em-launch-vllm"]')).to_have_attribute("data-said", "Copied")


def test_a_changed_field_is_reset_by_keyboard(calculator: Calculator) -> None:
    page = calculator.open().ready().page
    calculator.control("prompt").focus()
    page.keyboard.press("ArrowUp")
    calculator.marks(["prompt"])
    page.keyboard.press("Tab")
    expect(page.locator('[data-reset="prompt"]')).to_be_focused()
    page.keyboard.press("Enter")
    calculator.shows_everything()
    expect(calculator.control("prompt")).to_be_focused()


def test_on_a_phone_the_counts_stay_in_sight_while_inputs_are_edited(calculator: Calculator) -> None:
    page = calculator.page
    page.set_viewport_size(PHONE)
    calculator.open().ready()
    strip = calculator.region("strip")
    expect(strip).to_be_visible()
    for key in ("prompt", "mean_output", "runtime"):
        calculator.control(key).scroll_into_view_if_needed()
        calculator.control(key).focus()
        expect(strip).to_be_in_viewport(ratio=0.9)
    calculator.set("runtime", "2GB")
    calculator.shows(answer(runtime="2GB"))
    expect(strip).to_be_in_viewport(ratio=0.9)


def test_on_a_desktop_the_answers_stay_in_view_while_inputs_scroll(calculator: Calculator) -> None:
    calculator.open().ready()
    calculator.unfold("tensorrt-llm.max_batch_size")
    control = calculator.control("tensorrt-llm.cuda_graph_padding")
    control.scroll_into_view_if_needed()
    control.focus()
    expect(control).to_be_in_viewport()
    expect(calculator.region("cards")).to_be_in_viewport(ratio=0.9)


def test_one_glance_answers_above_the_fold(calculator: Calculator) -> None:
    calculator.open().ready()
    for region in ("cards", "finding", "bars"):
        expect(calculator.region(region)).to_be_in_viewport(ratio=1)


def test_axe_finds_nothing_beside_a_configuration(calculator: Calculator, axe: str) -> None:
    config = json.dumps(CONFIGS["deepseek-ai--DeepSeek-V3"])
    calculator.open("?v=1&gpu=h200-sxm&tp=8").ready()
    calculator.bring(config)
    calculator.shows(answer(config=config, gpu="h200-sxm", tp="8"))
    assert in_every_light(calculator.page, axe) == {}
    calculator.bring('{"model_type": "unheard-of"}')
    expect(calculator.page.locator("#em-config-verdict")).to_contain_text("model_type")
    assert in_every_light(calculator.page, axe) == {}
