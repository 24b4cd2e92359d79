"""After one visit the site works without a network, and files of two releases never meet on a page."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Response, expect
from scripts.site import service_worker
from scripts.site.assets import Release, content_hash

from browser.built_site import ROOT
from browser.calculator import READY, Calculator, answer, end_worker
from browser.conftest import Serve, Visitor
from browser.visited import Host

_APP = re.compile(r"assets/app/([0-9a-f]{16})/")
_RUNTIME = re.compile(r"assets/py/([0-9a-f]{16})/")


def only(pattern: re.Pattern[str], text: str) -> str:
    (found,) = set(pattern.findall(text))
    return str(found)


@pytest.fixture(scope="module")
def next_release(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the site whose own scripts and pages differ: another folder, another service worker."""
    folder = tmp_path_factory.mktemp("next") / "site"
    shutil.copytree(site, folder)
    page = (folder / "index.html").read_text("utf-8")
    old, runtime = only(_APP, page), only(_RUNTIME, "".join([str(path) + "/" for path in folder.glob("assets/py/*")]))
    app = folder / "assets/app" / old
    with (app / "regions.js").open("a", encoding="utf-8") as script:
        script.write("\ndocument.documentElement.dataset.release = 'next';\n")
    new = content_hash(app)
    app.rename(app.with_name(new))
    for path in folder.rglob("*.html"):
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    release = Release(f"assets/py/{runtime}", f"assets/app/{new}")
    service_worker.write(folder, ROOT / "site_assets/js/sw.js", release)
    return folder


def settled(page: Page) -> None:
    """Wait until the service worker of this visit has kept its release."""
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")


def update(page: Page) -> None:
    """Look for a newer service worker, and wait until it has kept its files or given up."""
    page.evaluate("""async () => {
      const registration = await navigator.serviceWorker.getRegistration();
      const found = await registration.update().catch(() => null);
      const worker = found?.installing;
      if (!worker) return;
      await new Promise((resolve) => {
        const look = () => { if (worker.state !== "installing") resolve(); };
        worker.addEventListener("statechange", look);
        look();
      });
    }""")


def caches(page: Page) -> list[str]:
    return [str(name) for name in page.evaluate("() => caches.keys()")]


def cut(host: Host, context: BrowserContext) -> None:
    """No network: the browser knows, and the server would not answer either."""
    host.away = True
    context.set_offline(True)


def joined(host: Host, context: BrowserContext) -> None:
    host.away = False
    context.set_offline(False)


def app_folders(page: Page) -> set[str]:
    """Collects the release folder of everything that the page and its worker load from now on."""
    seen: set[str] = set()

    def note(response: Response) -> None:
        if response.request.service_worker is None:
            seen.update(_APP.findall(response.url))

    page.context.on("response", note)
    return seen


@pytest.fixture
def visited(serve: Serve, visitor: Visitor) -> tuple[Host, Page, Calculator]:
    """One visit to the calculator, to its end."""
    host = serve(max_age=0)
    page, watch = visitor(host)
    watch.allow("ERR_INTERNET_DISCONNECTED", "ERR_FAILED", "Failed to fetch", "net::ERR", "404")
    calculator = Calculator(page, host.address).open().ready()
    settled(page)
    return host, page, calculator


def test_after_one_visit_a_reload_without_network_computes(visited: tuple[Host, Page, Calculator]) -> None:
    host, page, calculator = visited
    cut(host, page.context)
    page.reload()
    calculator.ready()
    calculator.set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")


def test_without_network_a_link_and_every_page_open(visited: tuple[Host, Page, Calculator]) -> None:
    host, page, calculator = visited
    cut(host, page.context)
    calculator.open("?v=1&prompt=5000")
    calculator.shows_everything(prompt="5000")
    for path in ("worked/", "method/", "hardware/", "models/"):
        page.goto(host.address + path)
        expect(page.locator("main h1")).to_be_visible()
        assert page.evaluate("() => [...document.styleSheets].every((sheet) => sheet.cssRules.length > 0)")
    page.goto(f"{host.address}hardware/")
    page.locator("#own-cuda_total").fill("79GiB")
    page.get_by_role("button", name="Open in the calculator").click()
    calculator.shows_everything(cuda_total="79GiB")


def test_a_second_visit_starts_from_the_cache(visited: tuple[Host, Page, Calculator]) -> None:
    host, page, calculator = visited
    host.asked.clear()
    page.reload()
    calculator.ready()
    calculator.shows_everything()
    assert [target for target in host.asked if "/assets/py/" in target or "/assets/app/" in target] == []


def test_an_open_page_keeps_its_release_when_a_new_one_comes(
    visited: tuple[Host, Page, Calculator], site: Path, next_release: Path
) -> None:
    """The old files are gone from the server; edits, a dead worker's restart and all details still work on the old ones."""
    host, page, calculator = visited
    old = only(_APP, (site / "index.html").read_text("utf-8"))
    page.reload()
    calculator.ready()
    host.folder = next_release
    loaded = app_folders(page)
    calculator.set("max_tokens", "700")
    calculator.shows_everything(max_tokens="700")
    with page.expect_event("worker", timeout=READY):
        end_worker(page)
    calculator.set("prompt", "2500")
    calculator.shows_everything(max_tokens="700", prompt="2500")
    assert page.locator("html").get_attribute("data-release") is None
    assert loaded <= {old}


def test_a_reload_after_a_new_release_takes_all_of_it(
    visited: tuple[Host, Page, Calculator], next_release: Path
) -> None:
    host, page, calculator = visited
    new = only(_APP, (next_release / "index.html").read_text("utf-8"))
    (before,) = caches(page)
    host.folder = next_release
    loaded = app_folders(page)
    page.reload()
    calculator.ready()
    expect(page.locator("html")).to_have_attribute("data-release", "next")
    assert loaded == {new}
    update(page)
    page.goto("about:blank")  # no page holds the old service worker any more
    calculator.open().ready()
    settled(page)
    assert before not in caches(page)
    cut(host, page.context)
    page.reload()
    calculator.ready()
    expect(page.locator("html")).to_have_attribute("data-release", "next")
    calculator.shows_everything()
    assert loaded == {new}


def test_without_network_a_page_is_of_one_release(
    visited: tuple[Host, Page, Calculator], site: Path, next_release: Path
) -> None:
    """A new release that was only half fetched does not show: without network the old one is there, whole."""
    host, page, calculator = visited
    old = only(_APP, (site / "index.html").read_text("utf-8"))
    host.folder = next_release
    host.missing.add("regions.js")
    update(page)
    cut(host, page.context)
    loaded = app_folders(page)
    page.reload()
    calculator.ready()
    calculator.set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")
    assert loaded == {old}
    joined(host, page.context)


def test_a_first_visit_outlives_its_release_or_says_so(
    visited: tuple[Host, Page, Calculator], site: Path, next_release: Path
) -> None:
    """No service worker stands behind a first visit: when its files are gone from the server, none of the new are taken."""
    host, page, calculator = visited
    old = only(_APP, (site / "index.html").read_text("utf-8"))
    host.folder = next_release
    update(page)
    loaded = app_folders(page)
    calculator.set("max_tokens", "700")
    calculator.shows_everything(max_tokens="700")
    end_worker(page)
    calculator.set("prompt", "2500")
    state = page.locator('#em-loader:is([data-state="failed"], [data-state="ready"])')
    expect(state).to_be_attached(timeout=READY)
    calculator.shows(
        answer(max_tokens="700") if page.locator("#em-loader").is_visible() else answer(max_tokens="700", prompt="2500")
    )
    assert loaded <= {old}
