"""What happens when Python does not come, comes slowly, or dies: it is said, the result stays, and a retry works."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from scripts.site.serve import Line

from browser.calculator import COUNTS, READY, Calculator, answer, end_worker, python_worker
from browser.conftest import Serve, Visitor
from browser.visited import Host

LOG_LOADER = """
window.log = [];
const note = () => {
  const loader = document.getElementById("em-loader");
  if (!loader || !loader.dataset.state) return requestAnimationFrame(note);
  const line = loader.checkVisibility() ? loader.textContent : "";
  window.log.push({ at: performance.now(), state: loader.dataset.state, line });
  if (loader.dataset.state !== "ready") requestAnimationFrame(note);
};
requestAnimationFrame(note);
"""


def alert(page: Page) -> Locator:
    return page.locator('#em-loader [role="alert"]')


def retry(page: Page) -> None:
    page.locator("#em-loader").get_by_role("button", name="Try again").click()


def test_a_quick_start_says_nothing(serve: Serve, visitor: Visitor) -> None:
    host = serve()
    page, _ = visitor(host)
    calculator = Calculator(page, host.address).open()
    loader = page.locator("#em-loader")
    expect(loader).to_have_attribute("data-state", "ready", timeout=READY)
    expect(loader).not_to_be_visible()
    calculator.shows_everything()


def test_on_a_slow_line_the_bytes_are_shown_after_some_seconds(serve: Serve, visitor: Visitor) -> None:
    host = serve(line=Line(6e6, 0.02))
    page, _ = visitor(host)
    page.add_init_script(LOG_LOADER)
    calculator = Calculator(page, host.address).open()
    loader = page.locator("#em-loader")
    expect(loader).to_contain_text("MB", timeout=READY)
    expect(loader.locator("progress")).to_be_visible()
    for engine, count in COUNTS.items():
        expect(page.locator(f'[data-region="cards"] [data-fig="{engine}.running"]')).to_have_text(count)
    expect(loader).to_have_attribute("data-state", "ready", timeout=READY)
    expect(loader).not_to_be_visible()
    calculator.set("max_tokens", "300")
    calculator.shows(answer(max_tokens="300"))
    log = page.evaluate("() => window.log")
    began = next(entry["at"] for entry in log if entry["state"] == "download")
    spoke = next(entry["at"] for entry in log if entry["line"])
    assert spoke - began >= 2000
    loaded = [float(entry["line"].split()[2]) for entry in log if " of " in entry["line"]]
    assert loaded == sorted(loaded)
    assert len(set(loaded)) > 2


def test_an_edit_on_a_slow_line_is_answered_when_python_is_there(serve: Serve, visitor: Visitor) -> None:
    host = serve(line=Line(30e6, 0.02))
    page, _ = visitor(host)
    calculator = Calculator(page, host.address).open()
    calculator.set("max_tokens", "600")
    calculator.set("prompt", "1000")
    calculator.shows_everything(max_tokens="600", prompt="1000")


@pytest.mark.parametrize("name", ["pyodide.asm.wasm", "stdlib.bin", "core.bin"])
def test_a_missing_file_is_named_with_its_status_and_a_retry_works(serve: Serve, visitor: Visitor, name: str) -> None:
    host = serve()
    host.missing.add(name)
    page, watch = visitor(host)
    watch.allow("404")
    calculator = Calculator(page, host.address).open()
    expect(alert(page)).to_be_visible(timeout=READY)
    expect(alert(page)).to_contain_text(name)
    expect(alert(page)).to_contain_text("404")
    calculator.shows(answer())
    host.missing.clear()
    retry(page)
    calculator.ready()
    expect(page.locator("#em-loader")).not_to_be_visible()
    calculator.set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")


@pytest.mark.parametrize("name", ["worker.js", "worker-boot.js", "pyodide.mjs", "pyodide.asm.mjs"])
def test_a_missing_script_ends_in_an_explanation(serve: Serve, visitor: Visitor, name: str) -> None:
    host = serve()
    host.missing.add(name)
    page, watch = visitor(host)
    watch.allow("404", "Failed to fetch dynamically imported module", "worker")
    calculator = Calculator(page, host.address).open()
    expect(alert(page)).to_be_visible(timeout=READY)
    calculator.shows(answer())
    host.missing.clear()
    retry(page)
    calculator.set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")


def test_a_link_whose_python_does_not_come_shows_no_foreign_result(serve: Serve, visitor: Visitor) -> None:
    host = serve()
    host.missing.add("pyodide.asm.wasm")
    page, watch = visitor(host)
    watch.allow("404")
    calculator = Calculator(page, host.address).open("?v=1&max_tokens=300")
    expect(alert(page)).to_be_visible(timeout=READY)
    expect(calculator.region("cards")).not_to_be_visible()
    expect(page.locator("#em-computing")).not_to_be_visible()
    expect(page.locator("#em-form")).to_have_attribute("inert", "")
    host.missing.clear()
    retry(page)
    calculator.shows_everything(max_tokens="300")
    calculator.shows_inputs({"max_tokens": "300"})


def test_a_damaged_interpreter_is_explained(serve: Serve, visitor: Visitor) -> None:
    host = serve()
    page, _ = visitor(host)
    page.context.route(
        "**/pyodide.asm.wasm", lambda route: route.fulfill(body=b"\0asm broken", content_type="application/wasm")
    )
    Calculator(page, host.address).open().shows(answer())
    expect(alert(page)).to_contain_text("damaged", timeout=READY)


def test_without_a_connection_it_says_so(serve: Serve, visitor: Visitor) -> None:
    host = serve()
    page, watch = visitor(host)
    watch.allow("ERR_INTERNET_DISCONNECTED")

    def lost(route: Route) -> None:
        page.context.set_offline(True)
        route.abort("internetdisconnected")

    page.context.route("**/pyodide.asm.wasm", lost)
    calculator = Calculator(page, host.address).open()
    expect(alert(page)).to_contain_text("no connection", timeout=READY)
    page.context.unroute("**/pyodide.asm.wasm")
    page.context.set_offline(False)
    retry(page)
    calculator.ready()
    calculator.shows_everything()


@pytest.mark.parametrize("lacks", ["WebAssembly", "WebAssembly.Tag", "DecompressionStream"])
def test_an_old_browser_keeps_the_static_result_and_is_told(host: Host, visitor: Visitor, lacks: str) -> None:
    page, _ = visitor(host)
    page.add_init_script(f"delete globalThis.{lacks};")
    calculator = Calculator(page, host.address).open()
    expect(alert(page)).to_contain_text("This browser lacks", timeout=READY)
    expect(page.locator("#em-loader button")).not_to_be_visible()
    calculator.shows(answer())


def test_a_worker_that_dies_is_restarted_with_the_inputs_kept(calculator: Calculator) -> None:
    page = calculator.open().ready().page
    calculator.set("prompt", "3000")
    calculator.shows(answer(prompt="3000"))
    with page.expect_event("worker", timeout=READY):
        end_worker(page)
    calculator.set("max_tokens", "900")
    calculator.shows_everything(prompt="3000", max_tokens="900")
    calculator.shows_inputs({"prompt": "3000", "max_tokens": "900"})


def test_a_request_that_kills_its_worker_is_asked_again(calculator: Calculator) -> None:
    page = calculator.open().ready().page
    calculator.shows_everything()
    python_worker(page).evaluate("() => { self.onmessage = () => self.close(); }")
    with page.expect_event("worker", timeout=READY):
        calculator.set("max_tokens", "900")
    calculator.shows_everything(max_tokens="900")


def test_a_worker_that_dies_twice_is_explained_and_a_retry_keeps_the_inputs(calculator: Calculator) -> None:
    page = calculator.open().ready().page
    calculator.set("prompt", "3000")
    calculator.shows_everything(prompt="3000")
    with page.expect_event("worker", timeout=READY):
        end_worker(page)
    calculator.ready()
    end_worker(page)
    expect(alert(page)).to_contain_text("stopped twice", timeout=READY)
    calculator.shows(answer(prompt="3000"))
    retry(page)
    calculator.ready()
    calculator.shows_everything(prompt="3000")
    calculator.shows_inputs({"prompt": "3000"})
