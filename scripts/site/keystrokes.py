"""From a key to the changed figures, and to the ledgers and pictures that follow: every field of the form, in turns."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, Playwright
from scripts.site.chromium import profile
from scripts.site.serve import SiteServer

PAUSE = 300
"""Milliseconds between edits: the details of one are done before the next."""
_MOST_KEYS = 1500
_ENTERED = {
    "cuda_total": "60GiB", "smi_total": "90000MiB", "runtime": "4.5GB", "preload": "1GiB", "prompt": "5000", "max_tokens": "1500",
    "mean_output": "700", "max_model_len": "9000", "vllm.watermark": "0.05", "vllm.kv_cache_memory_bytes": "20GB",
    "vllm.num_gpu_blocks_override": "9000", "sglang.schedule_conservativeness": "0.5", "sglang.chunked_prefill_size": "2048",
    "tensorrt-llm.cuda_graph_batch_sizes": "1,2,4,96",
}  # fmt: skip
"""What is typed into a field, key by key; 0.7 into the other decimals, 64 elsewhere."""
WATCH = """
addEventListener("keydown", (event) => {
  Object.assign(window, { key: event.timeStamp, changed: 0, followed: 0, answers: [] });
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
  const later = new MutationObserver(() => { window.followed = performance.now(); });
  for (const region of document.querySelectorAll("[data-region^=ledger], [data-region=launches], [data-region=charts]")) {
    later.observe(region, { childList: true, subtree: true, characterData: true });
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
    """One edit, in milliseconds from its key: the field, the figures, the last of ledgers, commands and pictures (None
    when none of them changed), and what Python took (None where the answer was there before the key)."""

    field: str
    shown: float
    followed: float | None
    python: float | None


class Keys(NamedTuple):
    """The edits by one way of making them."""

    way: str
    edits: list[Edit]

    def summary(self) -> str:
        """The middle and the tail of both, in one line."""
        shown, python = [edit.shown for edit in self.edits], [edit.python for edit in self.edits if edit.python]
        followed = [edit.followed for edit in self.edits if edit.followed]
        fields = {edit.field for edit in self.edits}
        text = (
            f"{self.way}: {len(shown)} edits of {len(fields)} fields, key to figures p50 {_at(shown, 50):.1f} ms, "
            f"p95 {_at(shown, 95):.1f} ms, worst {max(shown):.1f} ms; ledgers and pictures p50 {_at(followed, 50):.0f} ms, "
            f"p95 {_at(followed, 95):.0f} ms; {len(shown) - len(python)} answered ahead"
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


def _press(page: Page, key: str) -> tuple[float, float | None, float | None] | None:
    """Key to figures, key to the details, and Python's share; None when no figure changed."""
    page.evaluate("Object.assign(window, { changed: 0, took: null })")
    page.keyboard.press(key)
    page.wait_for_timeout(PAUSE)
    times: list[float | None] = page.evaluate("[changed && changed - key, followed && followed - key, took ?? null]")
    shown, followed, python = times
    return (shown, followed or None, python) if shown else None


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


def _entered(page: Page, keys: list[str]) -> Keys:
    """Every field set to another value: a whole text typed into it, the last and the first of its choices."""
    found: list[Edit] = []
    for key in keys:
        control = page.locator(f'[data-key="{key}"] :is(input, select)').first
        _focus(page, key)
        if control.evaluate("e => e.localName") == "select":
            pressed = ["End", "Home"]
        else:
            decimal = "0.05" in (control.get_attribute("data-steps") or "").split(",")
            pressed = list(_ENTERED.get(key, "0.7" if decimal else "64"))
            page.keyboard.press("Control+a")
            page.wait_for_timeout(PAUSE)
        for each in pressed:
            took = _press(page, each)
            if took is not None:
                found.append(Edit(key, *took))
        page.locator(f'[data-reset="{key}"]').evaluate("button => button.click()")
        page.wait_for_timeout(PAUSE)
    return Keys("whole values", found)


def measured(playwright: Playwright, folder: Path, edits: int) -> list[Keys]:
    """`edits` edits that changed a figure by the arrow keys, a quarter as many by typed digits, every field set to another
    value; and all of them together.
    """
    with SiteServer(folder) as server, profile(playwright, WATCH) as context:
        page = context.new_page()
        keys = _open(page, server.address)
        ways = [_stepped(page, keys, edits)]
        _open(page, server.address)
        ways.append(_typed(page, keys, edits // 4))
        _open(page, server.address)
        ways.append(_entered(page, keys))
    return [*ways, Keys("together", [edit for way in ways for edit in way.edits])]


def _open(page: Page, address: str) -> list[str]:
    """The calculator with all its folds open; returns its fields."""
    page.goto(address + "?v=1&prompt=4000&vllm.max_num_seqs=200&sglang.max_running_requests=200")
    page.wait_for_selector("html:not([data-em])", state="attached", timeout=120_000)
    for fold in page.locator("details.em-knobs").all():
        fold.evaluate("fold => { fold.open = true; }")
        fold.locator("[data-key]").first.wait_for()
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('#em-form [data-key]')].map((row) => row.dataset.key)"
    )
    return found
