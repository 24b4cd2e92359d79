"""One build, one browser; pages that are watched: no console error and no foreign request unless a test expects it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Page, ViewportSize, expect
from scripts.site.chromium import FLAGS
from scripts.site.serve import Line

from browser.built_site import ROOT, copy_of_the_site
from browser.calculator import Calculator
from browser.visited import NEEDS, Host, Watch, chromium

DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
_FAILURES = ROOT / ".cache/browser-failures"
expect.set_options(timeout=15_000)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type: BrowserType) -> dict[str, Any]:
    """Chromium with the flags that a bare machine wants. Without a browser every test fails and says what to install."""
    path = chromium(browser_type.executable_path)
    if path is None:
        pytest.fail(NEEDS, pytrace=False)
    return {"executable_path": path, "args": list(FLAGS)}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built site of its own for these tests; nobody writes into it."""
    return copy_of_the_site(tmp_path_factory.mktemp("site") / "site")


@pytest.fixture(scope="session")
def host(site: Path) -> Iterator[Host]:
    """The site at the root of an origin."""
    server = Host(site)
    with server:
        yield server


@pytest.fixture(scope="session")
def below(site: Path) -> Iterator[Host]:
    """The site under a sub-path."""
    server = Host(site, prefix="/sub/path/")
    with server:
        yield server


Serve = Callable[..., Host]


@pytest.fixture
def serve(site: Path) -> Iterator[Serve]:
    """Further hosts for a test that breaks something: `serve(prefix=..., line=..., folder=...)`."""
    servers: list[Host] = []

    def start(folder: Path = site, *, prefix: str = "/", line: Line | None = None, max_age: int = 600) -> Host:
        server = Host(folder, prefix=prefix, line=line, max_age=max_age)
        servers.append(server)
        server.__enter__()
        return server

    yield start
    for server in servers:
        server.__exit__()


@pytest.fixture(scope="session")
def shared(browser: Browser, host: Host, below: Host) -> Iterator[tuple[BrowserContext, Watch]]:
    """One warm profile for the tests that leave nothing behind."""
    context = browser.new_context(viewport=DESKTOP)
    for server in (host, below):
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.origin)
    yield context, Watch(context)
    context.close()


@pytest.fixture
def watch(shared: tuple[BrowserContext, Watch], host: Host, below: Host) -> Iterator[Watch]:
    """The shared profile's watch; the test fails on what it did not expect."""
    found = shared[1]
    found.errors.clear()
    found.requests.clear()
    found.allowed.clear()
    yield found
    assert found.unexpected() == []
    assert found.foreign({host.origin, below.origin}) == []


@pytest.fixture
def page(shared: tuple[BrowserContext, Watch], watch: Watch) -> Iterator[Page]:
    """A page in the warm profile."""
    del watch  # asked for so that its checks follow the page's end
    opened = shared[0].new_page()
    yield opened
    opened.close()


@pytest.fixture
def calculator(page: Page, host: Host) -> Calculator:
    """The calculator in the warm profile, not opened yet."""
    return Calculator(page, host.address)


Visitor = Callable[..., tuple[Page, Watch]]


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """Pages in profiles of their own: `visitor(host, **context_options)`; watched like the others."""
    seen: list[tuple[BrowserContext, Watch, Host]] = []

    def visit(server: Host, **options: Any) -> tuple[Page, Watch]:
        context = browser.new_context(**{"viewport": DESKTOP, **options})
        found = Watch(context)
        seen.append((context, found, server))
        return context.new_page(), found

    yield visit
    for context, _, _ in seen:
        context.close()
    for _, found, server in seen:
        assert found.unexpected() == []
        assert found.foreign({server.origin}) == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """A picture of every open page when a test fails."""
    report = yield
    if report.when == "call" and report.failed:
        _photograph(item)
    return report


def _photograph(item: pytest.Item) -> None:
    values: dict[str, Any] = getattr(item, "funcargs", {})
    opened = values.get("browser")
    shots = [page for context in (opened.contexts if isinstance(opened, Browser) else []) for page in context.pages]
    _FAILURES.mkdir(parents=True, exist_ok=True)
    for index, page in enumerate(shots):
        name = re.sub(r"[^\w-]+", "-", item.name)
        try:
            page.screenshot(path=_FAILURES / f"{name}-{index}.png", full_page=True, timeout=5000)
        except Exception as error:  # a page that hangs must not hide the failure itself
            report = f"no picture of {page.url}: {error}"
            item.add_report_section("call", "pictures", report)
