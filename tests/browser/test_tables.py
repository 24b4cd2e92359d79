"""The hardware and model tables sort and filter, and "use my GPU" leads to a plan with the visitor's own totals."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.calculator import READY, Calculator, answer
from browser.conftest import Serve, Visitor
from browser.visited import Host
from enginemem.architecture import model_ids
from enginemem.gpu_record import check_record
from enginemem.hardware import gpu_ids
from enginemem.link import decode
from enginemem.render.catalogue import gpu_example
from enginemem.scenario import Scenario

TABLES = {
    "hardware/": ("em-gpus", "gpu-filter", len(gpu_ids())),
    "models/": ("em-models", "model-filter", len(model_ids())),
}


def column(table: Locator, index: int) -> list[str]:
    """The sort keys of a column from top to bottom."""
    keys = table.evaluate(
        """(table, index) => [...table.tBodies[0].rows].map((row) => {
          const cell = row.cells[index];
          return cell.dataset.value ?? cell.textContent.trim();
        })""",
        index,
    )
    return [str(key) for key in keys]


@pytest.mark.parametrize("path", TABLES)
def test_every_column_sorts_both_ways_with_gaps_last(page: Page, host: Host, path: str) -> None:
    page.goto(host.address + path)
    table = page.locator(f"#{TABLES[path][0]}")
    headings = table.locator("thead th:has(.em-sort)")
    for index in range(headings.count()):
        heading = headings.nth(index)
        numbers = heading.get_attribute("data-number") is not None
        for way in ("ascending", "descending"):
            heading.locator("button").click()
            expect(heading).to_have_attribute("aria-sort", way)
            keys = column(table, index)
            known = [key for key in keys if key]
            assert keys[: len(known)] == known
            if numbers:
                assert [float(key) for key in known] == sorted(map(float, known), reverse=way == "descending")
        expect(table.locator("th[aria-sort]")).to_have_count(1)
    assert len(column(table, 0)) == TABLES[path][2]


@pytest.mark.parametrize("path", TABLES)
def test_a_filter_keeps_the_rows_that_hold_every_word(page: Page, host: Host, path: str) -> None:
    page.goto(host.address + path)
    name, field, total = TABLES[path]
    rows = page.locator(f"#{name} tbody tr")
    expect(rows).to_have_count(total)
    words = {"hardware/": "h100 nvl", "models/": "llama 70"}[path].split()
    page.locator(f"#{field}").fill(" ".join(words).upper())
    shown = [text.lower() for text in page.locator(f"#{name} tbody tr:visible").all_inner_texts()]
    assert 0 < len(shown) < total
    assert all(word in text for text in shown for word in words)
    expect(page.locator(f"#{field}-count")).to_have_text(f"{len(shown)} of {total}")
    page.locator(f"#{field}").fill("no such thing")
    expect(page.locator(f"#{name} tbody tr:visible")).to_have_count(0)
    page.locator(f"#{field}").fill("")
    expect(page.locator(f"#{name} tbody tr:visible")).to_have_count(total)


def test_a_gap_leads_to_its_reason(page: Page, host: Host) -> None:
    page.goto(f"{host.address}hardware/")
    gap = page.locator("#em-gpus td.em-null a").first
    part = (gap.get_attribute("href") or "").removeprefix("#")
    gap.click()
    expect(page.locator(f'[id="{part}"]')).to_be_visible()
    expect(page.locator(f'[id="{part}"]')).to_contain_text("not known")


def test_a_name_in_a_table_opens_the_calculator_with_it(page: Page, host: Host) -> None:
    for path, key, value in (("hardware/", "gpu", "h200-sxm"), ("models/", "model", "llama-3.1-70b")):
        page.goto(host.address + path)
        page.locator(f'main table a[href$="?v=1&{key}={value}"]').first.click()
        calculator = Calculator(page, host.address)
        calculator.shows(answer(**{key: value}))
        calculator.shows_inputs({key: value})


def test_two_totals_open_a_plan_with_them(page: Page, host: Host) -> None:
    page.goto(f"{host.address}hardware/")
    page.locator("#own-gpu").select_option("h200-sxm")
    page.locator("#own-cuda_total").fill("139.7 GiB")
    page.locator("#own-smi_total").fill("143771MiB")
    page.locator("#em-totals").get_by_role("button").click()
    page.wait_for_url("**/?v=1&*", timeout=READY)
    inputs = Scenario(gpu="h200-sxm", cuda_total="139.7 GiB", smi_total="143771MiB").non_defaults()
    calculator = Calculator(page, host.address)
    assert calculator.link() == Scenario(**inputs).link()
    calculator.shows_everything(**inputs)
    calculator.shows_inputs(inputs)


def test_a_bad_total_is_explained_beside_its_field(page: Page, host: Host) -> None:
    page.goto(f"{host.address}hardware/")
    page.locator("#own-cuda_total").fill("80")
    page.locator("#em-totals").get_by_role("button").click()
    (error,) = answer("link", cuda_total="80")["errors"]
    expect(page.locator("#own-cuda_total-error")).to_have_text(error["message"], timeout=READY)
    page.locator("#own-cuda_total").fill("80GB")
    page.locator("#em-totals").get_by_role("button").click()
    page.wait_for_url("**/?v=1&cuda_total=80GB", timeout=READY)


def check(page: Page, record: str) -> Locator:
    page.locator("#own-record").fill(record)
    page.locator("#em-record").get_by_role("button", name="Check the record").click()
    verdict = page.locator("#em-record-answer")
    expect(verdict).not_to_be_empty(timeout=2 * READY)
    expect(page.locator("#em-record-said")).to_be_empty()
    return verdict


def test_a_pasted_record_is_checked_and_opens_a_plan(page: Page, host: Host) -> None:
    page.goto(f"{host.address}hardware/")
    page.get_by_role("button", name="Fill in an example").click()
    record = json.loads(page.locator("#own-record").input_value())
    assert record == json.loads(json.dumps(gpu_example("h100-sxm")))
    record["name"] = "My H100"
    record["cuda_total"]["value"] = "78.5GiB"
    verdict = check(page, json.dumps(record))
    expect(verdict).to_contain_text("My H100 is planned with the rules of")
    verdict.get_by_role("link").click()
    link = check_record(json.dumps(record)).link
    assert link is not None
    calculator = Calculator(page, host.address)
    calculator.shows(answer(link=link))
    calculator.shows_inputs(decode(link).non_defaults())
    assert decode(link).text("gpu") == "h100-sxm"
    assert decode(link).non_defaults()["cuda_total"] == "78.5GiB"


def test_the_faults_of_a_pasted_record_are_named(page: Page, host: Host) -> None:
    page.goto(f"{host.address}hardware/")
    record = gpu_example("h100-sxm")
    record["cuda_total"] = {"value": "80", "source": "a log", "standing": "printed", "confidence": "high"}
    record["colour"] = "green"
    del record["vendor"]
    verdict = check(page, json.dumps(record))
    for field in ("cuda_total.value", "colour", "vendor"):
        expect(verdict.locator("code", has_text=field).first).to_be_visible()
    expect(verdict.get_by_role("link")).to_have_count(0)
    verdict = check(page, "no JSON at all")
    expect(verdict).to_contain_text("not accepted")


def test_hostile_text_in_a_record_stays_text(page: Page, host: Host) -> None:
    page.goto(f"{host.address}hardware/")
    record = gpu_example("h100-sxm")
    record["name"] = "<img src=x onerror=\"document.title='taken'\">"
    verdict = check(page, json.dumps(record))
    expect(verdict).to_contain_text("<img src=x")
    expect(verdict.locator("img")).to_have_count(0)
    assert page.title() != "taken"


def test_a_record_never_enters_the_address(page: Page, host: Host) -> None:
    page.goto(f"{host.address}hardware/")
    check(page, json.dumps({"name": "secret"}))
    assert "secret" not in page.url
    assert host.asked
    assert not [target for target in host.asked if "secret" in target]


def test_without_python_the_hardware_page_says_why_and_the_button_tries_again(serve: Serve, visitor: Visitor) -> None:
    host = serve()
    host.missing.add("stdlib.bin")
    page, watch = visitor(host)
    watch.allow("404")
    page.goto(f"{host.address}hardware/")
    page.locator("#own-cuda_total").fill("70GiB")
    button = page.locator("#em-totals").get_by_role("button")
    button.click()
    expect(page.locator("#em-totals-said")).to_contain_text("stdlib.bin: HTTP status 404", timeout=READY)
    host.missing.clear()
    button.click()
    page.wait_for_url("**/?v=1&cuda_total=70GiB", timeout=READY)


def test_a_missing_script_of_the_hardware_page_is_told(serve: Serve, visitor: Visitor) -> None:
    host = serve()
    host.missing.add("client.js")
    page, watch = visitor(host)
    watch.allow("404")
    page.goto(f"{host.address}hardware/")
    page.get_by_role("button", name="Check the record").click()
    expect(page.locator("#em-record-said")).to_contain_text("did not start")


def test_search_is_fetched_when_it_is_wanted(page: Page, host: Host) -> None:
    """No page brings the index with it; the key that opens the search does, and what follows is typed into it."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{host.address}method/")
    page.wait_for_load_state("networkidle")
    assert [url for url in asked if "/bundle." in url]
    assert not [url for url in asked if "search" in url]
    page.keyboard.press("/")
    expect(page.locator("input.md-search__input")).to_be_focused()
    page.keyboard.type("disprove")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    assert [url for url in asked if url.endswith("/search_index.json")]


def test_search_finds_a_page(page: Page, host: Host) -> None:
    page.goto(f"{host.address}method/")
    page.locator("input.md-search__input").press_sequentially("disprove")
    found = page.locator(".md-search-result__link").first
    expect(found).to_be_visible()
    found.click()
    expect(page.locator("main h1")).to_contain_text("Method")
