"""A link opens exactly its inputs; Back and Forward go through the edits; a bad link is explained by name."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from scripts.site.serve import Line

from browser.calculator import COUNTS, READY, Calculator, answer
from browser.conftest import Serve, Visitor
from browser.visited import Host
from enginemem.comparison import compare
from enginemem.link import decode
from enginemem.scenario import Scenario
from enginemem.worked import WorkedCase, worked_cases

MANY = {
    "gpu": "h200-sxm", "tp": "2", "model": "llama-3.1-70b", "weight_dtype": "fp8", "kv_dtype": "fp8", "prompt": "12000",
    "max_tokens": "4000", "mean_output": "900", "shape": "fixed", "runtime": "4.5GB", "preload": "0.75GiB",
    "vllm.max_num_seqs": "200", "sglang.mem_fraction_static": "0.82", "tensorrt-llm.cuda_graph_batch_sizes": "1,2,4,8",
}  # fmt: skip

WATCH_FRAMES = """
window.seen = [];
const look = () => {
  const cards = document.querySelector('[data-region="cards"]');
  if (cards && getComputedStyle(cards).visibility === "visible") {
    const counts = [...cards.querySelectorAll('[data-fig$=".running"]')].map((figure) => figure.textContent);
    if (window.seen.at(-1) !== counts.join()) window.seen.push(counts.join());
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


def published(case: WorkedCase) -> list[str]:
    return [f"{engine['running']:,}" for engine in case.record["engines"].values()]


@pytest.mark.parametrize("case", worked_cases(), ids=lambda case: case.id)
def test_a_worked_link_gives_the_published_figures(page: Page, host: Host, case: WorkedCase) -> None:
    page.goto(f"{host.address}worked/")
    links = page.locator("main a.em-button", has_text="Open these inputs")
    expect(links).to_have_count(len(worked_cases()))
    links.nth(worked_cases().index(case)).click()
    calculator = Calculator(page, host.address)
    assert calculator.link() == case.scenario.link()
    for engine, count in zip(case.record["engines"], published(case), strict=True):
        expect(page.locator(f'[data-region="cards"] [data-fig="{engine}.running"]')).to_have_text(count, timeout=READY)
    calculator.shows_everything(**case.scenario.non_defaults())


def test_a_link_shows_nothing_but_its_own_figures(serve: Serve, visitor: Visitor) -> None:
    slow = serve(line=Line(40e6, 0.02))
    page, _ = visitor(slow)
    page.add_init_script(WATCH_FRAMES)
    calculator = Calculator(page, slow.address).open("?v=1&max_tokens=300")
    expect(page.locator("#em-computing")).to_be_visible()
    for region in ("cards", "finding", "bars", "table", "ledger-vllm", "charts", "launches"):
        expect(calculator.region(region)).not_to_be_visible()
    calculator.shows_everything(max_tokens="300")
    expect(page.locator("#em-computing")).not_to_be_visible()
    own = ",".join(counts_of("?v=1&max_tokens=300"))
    assert page.evaluate("() => window.seen") == [own]


def counts_of(link: str) -> list[str]:
    """The counts of a link's plans, as the cards show them."""
    return [f"{plan.running:,}" for plan in compare(decode(link)).engines.values()]


def test_a_copied_link_opens_the_same_inputs_and_figures(page: Page, host: Host) -> None:
    first = Calculator(page, host.address).open().ready()
    for key, text in MANY.items():
        first.set(key, text)
    first.shows(answer(**MANY))
    page.locator('[data-action="link"]').click()
    expect(page.locator('[data-action="link"]')).to_have_attribute("data-said", "Copied")
    link = str(page.evaluate("() => navigator.clipboard.readText()"))
    assert link == host.address + Scenario(**MANY).link()
    assert link == page.url
    page.goto("about:blank")
    page.goto(link)
    opened = Calculator(page, host.address)
    opened.shows_everything(**MANY)
    opened.shows_inputs(Scenario(**MANY).non_defaults())


def test_back_and_forward_restore_inputs_and_figures(calculator: Calculator) -> None:
    calculator.open().ready()
    page = calculator.page
    steps: list[dict[str, str]] = [{}]
    for key, text in (("prompt", "4000"), ("max_tokens", "600"), ("sglang.page_size", "64")):
        calculator.set(key, text)
        steps.append({**steps[-1], key: text})
        calculator.shows(answer(**steps[-1]))
    for inputs in reversed(steps[:-1]):
        page.go_back()
        calculator.shows_everything(**inputs)
        calculator.shows_inputs(inputs)
    for inputs in steps[1:]:
        page.go_forward()
        calculator.shows_everything(**inputs)
        calculator.shows_inputs(inputs)


def test_typing_in_one_field_is_one_step_back(calculator: Calculator) -> None:
    calculator.open().ready()
    before = calculator.page.evaluate("() => history.length")
    control = calculator.control("prompt")
    control.fill("")
    control.press_sequentially("16000", delay=60)
    calculator.shows(answer(prompt="16000"))
    assert calculator.page.evaluate("() => history.length") == before + 1
    calculator.page.go_back()
    calculator.shows_everything()


def test_coming_back_from_another_page_restores_inputs_and_figures(calculator: Calculator) -> None:
    page = calculator.page
    calculator.open().ready()
    calculator.set("mean_output", "150")
    calculator.shows(answer(mean_output="150"))
    page.locator("main a", has_text="what is modelled").click()
    expect(page.locator("h1")).to_contain_text("Method")
    page.go_back()
    calculator.shows_everything(mean_output="150")
    calculator.shows_inputs({"mean_output": "150"})
    calculator.set("mean_output", "160")
    calculator.shows_everything(mean_output="160")


def test_a_reload_keeps_inputs_and_figures(calculator: Calculator) -> None:
    calculator.open().ready()
    calculator.set("runtime", "1.5GB")
    calculator.shows(answer(runtime="1.5GB"))
    calculator.page.reload()
    calculator.shows_everything(runtime="1.5GB")
    calculator.shows_inputs({"runtime": "1.5GB"})


BAD_LINKS = {
    "an unknown key": ("?v=1&promt=2000", ("promt", "prompt")),
    "a bad value": ("?v=1&prompt=lots&max_tokens=300", ("prompt", "lots")),
    "an unknown name": ("?v=1&gpu=h100-smx", ("gpu", "h100-smx", "h100-sxm")),
    "a future version": ("?v=99&prompt=4000", ("v", "99", "newer page")),
    "several faults": ("?v=1&prompt=0&nope=1&vllm.max_num_seqs=x", ("prompt", "nope", "vllm.max_num_seqs")),
    "a key given twice": ("?v=1&prompt=1&prompt=2", ("prompt", "twice")),
    "no link at all": ("?%%%", ("link",)),
}


@pytest.mark.parametrize("fault", BAD_LINKS)
def test_a_bad_link_is_explained_by_name(calculator: Calculator, fault: str) -> None:
    link, words = BAD_LINKS[fault]
    calculator.open(link)
    problem = calculator.page.locator("#em-problem")
    expect(problem).to_be_visible(timeout=READY)
    for word in words:
        expect(problem).to_contain_text(word)
    for error in answer(link=link)["errors"]:
        expect(problem).to_contain_text(error["message"])
    expect(problem).to_contain_text("not the link’s")
    expect(calculator.page.locator("#em-computing")).not_to_be_visible()
    calculator.shows_everything()
    calculator.shows_inputs({})
    problem.get_by_role("button", name="Start from the defaults").click()
    calculator.shows_everything()
    for engine, count in COUNTS.items():
        expect(calculator.page.locator(f'[data-region="cards"] [data-fig="{engine}.running"]')).to_have_text(count)
    expect(problem).not_to_be_visible()


def test_editing_from_a_bad_link_works(calculator: Calculator) -> None:
    calculator.open("?v=1&prompt=lots")
    expect(calculator.page.locator("#em-problem")).to_be_visible(timeout=READY)
    calculator.set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")
    expect(calculator.page.locator("#em-problem")).not_to_be_visible()


def test_going_back_to_a_bad_link_keeps_the_last_good_result(calculator: Calculator) -> None:
    page = calculator.page
    calculator.open("?v=1&prompt=lots")
    problem = page.locator("#em-problem")
    problem.get_by_role("button", name="Start from the defaults").click(timeout=READY)
    calculator.set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")
    page.go_back()
    calculator.shows_everything()
    page.go_back()
    expect(problem).to_contain_text("lots")
    calculator.shows_everything()
    page.locator('[name="em-reference"][value="vllm"]').check()
    calculator.shows(answer(reference="vllm"))
    calculator.set("prompt", "1000")
    calculator.shows_everything(reference="vllm", prompt="1000")
    expect(problem).not_to_be_visible()


def test_back_from_a_bad_link_shows_the_good_result(calculator: Calculator) -> None:
    calculator.open().ready()
    calculator.set("prompt", "3000")
    calculator.shows(answer(prompt="3000"))
    calculator.page.evaluate("() => { location.search = '?v=1&prompt=lots'; }")
    expect(calculator.page.locator("#em-problem")).to_be_visible(timeout=READY)
    calculator.page.go_back()
    calculator.shows_everything(prompt="3000")
    expect(calculator.page.locator("#em-problem")).not_to_be_visible()
