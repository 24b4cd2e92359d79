"""Time to the first live result, cold and warm, for the site and for two ways to use Pyodide's files as they come."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import BrowserContext, Playwright
from scripts.site.chromium import profile
from scripts.site.serve import Line, SiteServer

LINE = Line(20e6, 0.040)
HOST = (".js", ".mjs", ".wasm")
"""What the measured host compresses."""
LINK = "?v=1&prompt=4000"
SETTLE = 4000
"""Milliseconds after a visit: for the service worker's copy, and for the browser's compiled code."""
_WATCH = """
new MutationObserver(() => {
  const page = document.documentElement;
  if (page && page.dataset.em === "pending") window.asked = true;
  if (page && window.asked && !page.dataset.em && !window.live) window.live = performance.now();
}).observe(document, { attributes: true, subtree: true, childList: true });
"""


class Times(NamedTuple):
    """Milliseconds from the start of the navigation to the link's own figures on the page."""

    cold: tuple[float, ...]
    warm: tuple[float, ...]

    def median(self, kind: str) -> float:
        """The median of `cold` or `warm`."""
        return statistics.median(self.cold if kind == "cold" else self.warm)


def _visit(context: BrowserContext, address: str) -> float:
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("html:not([data-em])", state="attached", timeout=120_000)
    took = float(page.evaluate("window.live"))
    page.wait_for_timeout(SETTLE)
    page.close()
    return took


def one_round(playwright: Playwright, folder: Path) -> Times:
    """One profile: the first visit is cold; the third and fourth are warm (the second stores compiled code)."""
    with SiteServer(folder, line=LINE, compressed=HOST) as server, profile(playwright, _WATCH) as context:
        first, _, *later = [_visit(context, server.address + LINK) for _ in range(4)]
    return Times((first,), tuple(later))


def in_turns(playwright: Playwright, folders: Mapping[str, Path], rounds: int) -> dict[str, Times]:
    """Every folder `rounds` times, in turns, so that what else the machine does falls on all of them."""
    found = {name: Times((), ()) for name in folders}
    for _ in range(rounds):
        for name, folder in folders.items():
            more = one_round(playwright, folder)
            found[name] = Times(found[name].cold + more.cold, found[name].warm + more.warm)
    return found
