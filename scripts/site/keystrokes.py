"""From a key to the changed figures: every field of the form is stepped with the arrow keys, in turns."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, Playwright
from scripts.site.chromium import profile
from scripts.site.serve import SiteServer

PAUSE = 220
"""Milliseconds between edits: the details of one are done before the next."""
_MOST_KEYS = 1500
WATCH = """
addEventListener("keydown", (event) => {
  Object.assign(window, { key: event.timeStamp, changed: 0, answers: [] });
}, true);
addEventListener("DOMContentLoaded", () => {
  const observer = new MutationObserver(() => {
    if (window.changed) return;
    window.changed = performance.now();
    window.took = window.answers[0] ?? null;
  });
  for (const region of document.querySelectorAll("[data-region=cards], [data-region=table], [data-region=finding]")) {
    observer.observe(region, { childList: true, subtree: true, characterData: true });
  }
});
const Native = Worker;
window.answers = [];
window.Worker = class extends Native {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => { if (data.took) window.answers.push(data.took); });
  }
};
"""
_ANSWER = "    const found = python.answer(text);\n"
_POST = 'if (typeof found === "string") postMessage({ type: "answer", id, text: found });'


class Edit(NamedTuple):
    """One edit: the field, milliseconds from the key to the figures, and those of Python's answer, None where the
    answer was there before the key."""

    field: str
    shown: float
    python: float | None


class Keys(NamedTuple):
    """The edits by one way of making them."""

    way: str
    edits: list[Edit]

    def summary(self) -> str:
        """The middle and the tail of both, in one line."""
        shown, python = [edit.shown for edit in self.edits], [edit.python for edit in self.edits if edit.python]
        fields = {edit.field for edit in self.edits}
        text = (
            f"{self.way}: {len(shown)} edits of {len(fields)} fields, key to figures p50 {_at(shown, 50):.1f} ms, "
            f"p95 {_at(shown, 95):.1f} ms, worst {max(shown):.1f} ms; {len(shown) - len(python)} answered ahead"
        )
        if len(python) < 2:
            return text
        return f"{text}, Python in the others p50 {_at(python, 50):.1f} ms, p95 {_at(python, 95):.1f} ms"


def _at(values: list[float], percent: int) -> float:
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


def _press(page: Page, key: str) -> tuple[float, float | None] | None:
    """Key to figures and Python's share, or None when no figure changed."""
    page.evaluate("window.changed = 0")
    page.keyboard.press(key)
    page.wait_for_timeout(PAUSE)
    took = page.evaluate("window.changed ? [window.changed - window.key, window.took] : null")
    return None if took is None else (float(took[0]), took[1])


def _focus(page: Page, key: str) -> None:
    page.locator(f'[data-key="{key}"] :is(input, select)').first.focus()
    # The field has the focus for a while before the key comes, as with a person.
    page.wait_for_timeout(PAUSE)


def _stepped(page: Page, keys: list[str], edits: int) -> Keys:
    """Every field with the arrow keys, up and down again, in turns."""
    found: list[Edit] = []
    pressed = 0
    while len(found) < edits and pressed < _MOST_KEYS:
        for key in keys:
            for direction in ("ArrowUp", "ArrowDown"):
                pressed += 1
                _focus(page, key)
                took = _press(page, direction)
                if took is not None:
                    found.append(Edit(key, *took))
    return Keys("arrow keys", found[:edits])


def _typed(page: Page, keys: list[str], edits: int) -> Keys:
    """A digit behind the numbers that the fields hold; taking it away again is not counted."""
    found: list[Edit] = []
    pressed = 0
    while len(found) < edits and pressed < _MOST_KEYS:
        for key in keys:
            control = page.locator(f'[data-key="{key}"] :is(input, select)').first
            if not re.fullmatch(r"[0-9.]+", control.input_value()) or control.evaluate("e => e.localName") != "input":
                continue
            pressed += 1
            _focus(page, key)
            page.keyboard.press("End")
            page.wait_for_timeout(PAUSE)
            took = _press(page, str(1 + pressed % 9))
            page.keyboard.press("Backspace")
            page.wait_for_timeout(PAUSE)
            if took is not None:
                found.append(Edit(key, *took))
        if not pressed:
            break
    return Keys("typed digits", found[:edits])


def measured(playwright: Playwright, folder: Path, edits: int) -> list[Keys]:
    """`edits` edits that changed a figure by the arrow keys, and a quarter as many by typing."""
    with SiteServer(folder) as server, profile(playwright, WATCH) as context:
        page = context.new_page()
        page.goto(server.address + "?v=1&prompt=4000&vllm.max_num_seqs=200&sglang.max_running_requests=200")
        page.wait_for_selector("html:not([data-em])", state="attached", timeout=120_000)
        for fold in page.locator("details.em-knobs").all():
            fold.evaluate("fold => { fold.open = true; }")
            fold.locator("[data-key]").first.wait_for()
        keys: list[str] = page.evaluate(
            "[...document.querySelectorAll('#em-form [data-key]')].map((row) => row.dataset.key)"
        )
        return [_stepped(page, keys, edits), _typed(page, keys, edits // 4)]
