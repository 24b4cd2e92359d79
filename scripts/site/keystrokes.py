"""From a key to the changed figures: every field of the form is stepped with the arrow keys, in turns."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, Playwright
from scripts.site.chromium import profile
from scripts.site.serve import SiteServer

PAUSE = 220
"""Milliseconds between edits: the details of one are done before the next."""
_MOST_KEYS = 1500
_WATCH = """
addEventListener("keydown", (event) => { window.key = event.timeStamp; window.changed = 0; }, true);
addEventListener("DOMContentLoaded", () => {
  const observer = new MutationObserver(() => { window.changed ||= performance.now(); });
  for (const region of document.querySelectorAll("[data-region=cards], [data-region=table], [data-region=finding]")) {
    observer.observe(region, { childList: true, subtree: true, characterData: true });
  }
});
const Native = Worker;
window.python = [];
window.Worker = class extends Native {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => { if (data.took) window.python.push(data.took); });
  }
};
"""
_ANSWER = "    const found = python.answer(text);\n"
_POST = 'if (typeof found === "string") postMessage({ type: "answer", id, text: found });'


class Keys(NamedTuple):
    """Milliseconds by edit, of all together and of Python alone, and the fields that were edited."""

    shown: tuple[float, ...]
    python: tuple[float, ...]
    fields: frozenset[str]

    def summary(self) -> str:
        """The middle and the tail of both, in one line."""
        return (
            f"{len(self.shown)} edits of {len(self.fields)} fields: key to figures p50 {_at(self.shown, 50):.1f} ms, "
            f"p95 {_at(self.shown, 95):.1f} ms, worst {max(self.shown):.1f} ms; of which Python p50 "
            f"{_at(self.python, 50):.1f} ms, p95 {_at(self.python, 95):.1f} ms"
        )


def _at(values: tuple[float, ...], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def timed_worker(app: Path) -> None:
    """Let the worker of a copied site say how long Python took. Raises ValueError when it has another form."""
    path = app / "worker.js"
    text = path.read_text(encoding="utf-8")
    if _ANSWER not in text or _POST not in text:
        raise ValueError(f"{path} is not as this measurement expects")
    text = text.replace(
        _ANSWER, f"    const began = performance.now();\n{_ANSWER}    const took = performance.now() - began;\n"
    )
    path.write_text(text.replace(_POST, _POST.replace("text: found", "text: found, took")), encoding="utf-8")


def _edit(page: Page, key: str, direction: str) -> float | None:
    control = page.locator(f'[data-key="{key}"] :is(input, select)').first
    page.evaluate("window.changed = 0; window.python.length = 0")
    # The field has the focus for a while before the key comes, as with a person.
    control.focus()
    page.wait_for_timeout(PAUSE)
    page.keyboard.press(direction)
    page.wait_for_timeout(PAUSE)
    took = page.evaluate("window.changed ? window.changed - window.key : null")
    return None if took is None else float(took)


def measured(playwright: Playwright, folder: Path, edits: int) -> Keys:
    """`edits` edits that changed a figure, the fields in turns, each up and then down again."""
    shown: list[float] = []
    python: list[float] = []
    fields: set[str] = set()
    with SiteServer(folder) as server, profile(playwright, _WATCH) as context:
        page = context.new_page()
        page.goto(server.address + "?v=1&prompt=4000")
        page.wait_for_selector("html:not([data-em])", state="attached", timeout=120_000)
        for fold in page.locator("details.em-knobs").all():
            fold.evaluate("fold => { fold.open = true; }")
        keys: list[str] = page.evaluate(
            "[...document.querySelectorAll('#em-form [data-key]')].map((row) => row.dataset.key)"
        )
        pressed = 0
        while len(shown) < edits and pressed < _MOST_KEYS:
            for key in keys:
                for direction in ("ArrowUp", "ArrowDown"):
                    pressed += 1
                    took = _edit(page, key, direction)
                    if took is not None:
                        shown.append(took)
                        python.extend(page.evaluate("window.python.slice(0, 1)"))
                        fields.add(key)
    return Keys(tuple(shown[:edits]), tuple(python), frozenset(fields))
