"""How long Python takes in the browser for the figures of each preset: comparison, cards, table and all."""

from __future__ import annotations

import statistics
from pathlib import Path

from playwright.sync_api import Playwright
from scripts.site.chromium import profile
from scripts.site.keystrokes import WATCH
from scripts.site.serve import SiteServer

SIZES = (1, 2, 4, 8)
"""GPUs that a replica is split over."""
_ASK = """async ([client, model, tp, times]) => {
  const { createEngine } = await import(client);
  window.own ??= createEngine();
  const took = [];
  for (let turn = 0; turn < times; turn += 1) {
    const inputs = { gpu: "b200", model, tp: String(tp), prompt: String((window.asked = (window.asked ?? 3000) + 1)) };
    const answer = await window.own.request({ kind: "plan", part: "figures", reference: "", inputs });
    if (!answer.ok) return null;
    took.push(window.answers.at(-1));
  }
  return took;
}"""


def slowest(playwright: Playwright, folder: Path, app: str, *, times: int = 9) -> list[tuple[float, str, int]]:
    """Every preset and size that can be planned, the slowest first: median milliseconds, preset, size.

    No two requests are equal, so nothing is answered from what is kept.
    """
    found: list[tuple[float, str, int]] = []
    with SiteServer(folder) as server, profile(playwright, WATCH) as context:
        page = context.new_page()
        page.goto(server.address)
        # The page's own Python would take turns with the one that is measured.
        page.wait_for_selector("#em-loader[data-state=ready]", state="attached", timeout=120_000)
        models: list[str] = page.evaluate(
            "[...document.querySelector('[data-key=model] select').options].map((o) => o.value)"
        )
        # The first requests find nothing ready: they are not counted.
        page.evaluate(_ASK, [f"{server.address}{app}/client.js", models[0], 1, times])
        for model in models:
            for tp in SIZES:
                took = page.evaluate(_ASK, [f"{server.address}{app}/client.js", model, tp, times])
                if took is not None:
                    found.append((statistics.median(took), model, tp))
    return sorted(found, reverse=True)
