"""The calculator page as a test handles it, and what Python on this machine answers to the same inputs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any

from playwright.sync_api import Error, Locator, Page, Worker, expect

from enginemem.comparison import ENGINES
from enginemem.scenario import PLAN_INPUTS
from enginemem.web import handle

READY = 30_000
"""Milliseconds that Python may take to start on a busy machine."""
COUNTS = {"vllm": "209", "sglang": "121", "tensorrt-llm": "113"}
"""The published counts of the default inputs."""


def answer(
    part: str = "figures", *, link: str | None = None, reference: str = "", config: str | None = None, **inputs: str
) -> dict[str, Any]:
    """The answer that CPython gives; `inputs` under their keys, with `.` as it is: `**{"vllm.max_num_seqs": "64"}`.

    `config`: the text of a config.json, whose model takes the preset's place.
    """
    asked = {"id": 1, "kind": "plan", "part": part, "reference": reference}
    asked |= {"inputs": inputs} if link is None else {"link": link}
    asked |= {} if config is None else {"config": config}
    found: dict[str, Any] = json.loads(handle(json.dumps(asked)))
    return found


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def text_of(html: str) -> str:
    """The text content of a piece of HTML, spaces folded."""
    reader = _Text()
    reader.feed(html)
    reader.close()
    return " ".join("".join(reader.parts).split())


def python_worker(page: Page) -> Worker:
    """The newest worker of the page that runs Python."""
    return [worker for worker in page.workers if worker.url.startswith("blob:")][-1]


def end_worker(page: Page) -> None:
    python_worker(page).evaluate("() => self.close()")


_ADDRESSED = """() => document.documentElement.matches(".no-js") || new Promise((done) => {
  setTimeout(done, 500);
  requestAnimationFrame(() => setTimeout(() => setTimeout(done)));
})"""
"""The address follows the figures by a frame; half a second where no frames are made."""

_FOLDED = """() => [...document.querySelectorAll("#em-form details:has(> noscript)")].map(
  (fold) => fold.id.slice("em-knobs-".length),
)"""
"""The engines whose fields are still text, at their defaults."""
_SHOWN = """([regions, texts]) => {
  const folded = (FOLDED)().map((engine) => `auto.${engine}.`);
  const text = (element) => element.textContent.replace(/\\s+/g, " ").trim();
  const all = (attribute, names) => Object.fromEntries(names.map((name) => {
    const found = [...document.querySelectorAll(`[${attribute}="${CSS.escape(name)}"]`)].map(text);
    return [name, found.every((each) => each === found[0]) ? found.slice(0, 1) : found];
  }));
  // A text beside a field that stands as text itself is not on the page yet.
  const shown = all("data-text", Object.keys(texts));
  for (const [name, found] of Object.entries(shown)) {
    if (!found.length && folded.some((start) => name.startsWith(start))) shown[name] = texts[name];
  }
  const root = document.documentElement;
  const seen = (name) => {
    const region = document.querySelector(`[data-region="${name}"]`);
    return region !== null && getComputedStyle(region).visibility === "visible";
  };
  return [all("data-region", regions), shown, !root.dataset.em && regions.every(seen)];
}""".replace("FOLDED", _FOLDED)
_VALUES = f"""(defaults) => Object.assign({{}}, ...({_FOLDED})().map((engine) => defaults[engine]), Object.fromEntries(
  [...document.querySelectorAll("#em-form [data-key]")].map((row) => [row.dataset.key, row.querySelector("input, select").value]),
))"""
_DEFAULTS = {
    engine: {field.key: field.default for field in PLAN_INPUTS if field.section == engine} for engine in ENGINES
}
_MARKED = (
    """() => [...document.querySelectorAll("#em-form [data-key][data-changed]")].map((row) => row.dataset.key).sort()"""
)


class Calculator:
    """One page with the calculator on it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address

    def open(self, link: str = "") -> Calculator:
        self.page.goto(self.address + link)
        return self

    def ready(self) -> Calculator:
        """Wait until Python answers."""
        expect(self.page.locator("#em-loader")).to_have_attribute("data-state", "ready", timeout=READY)
        return self

    def region(self, name: str) -> Locator:
        return self.page.locator(f'[data-region="{name}"]')

    def row(self, key: str) -> Locator:
        return self.page.locator(f'#em-form [data-key="{key}"]')

    def control(self, key: str) -> Locator:
        return self.row(key).locator("input, select").first

    def unfold(self, key: str) -> None:
        """Open the fold of an engine's knob."""
        engine = PLAN_INPUTS[key].section
        fold = self.page.locator(f"#em-knobs-{engine}")
        if fold.count() and fold.get_attribute("open") is None:
            fold.locator("summary").click()

    def set(self, key: str, text: str) -> None:
        """Type or choose a value."""
        self.unfold(key)
        field = PLAN_INPUTS[key]
        if field.choices is not None or field.kind in ("gpu", "model", "flag"):
            self.control(key).focus()
            self.control(key).select_option(text)
        else:
            self.control(key).fill(text)

    def bring(self, text: str) -> None:
        """Paste the text of a config.json."""
        fold = self.page.locator("#em-config")
        if fold.get_attribute("open") is None:
            fold.locator("summary").click()
        self.page.locator("#em-config-text").fill(text)

    def reset(self, key: str) -> None:
        self.row(key).locator(f'[data-reset="{key}"]').click()

    def _becomes(self, expected: object, script: str, argument: object = None) -> None:
        """Poll the page until `script` gives what is expected; one question for many places keeps this quick."""
        deadline = time.monotonic() + READY / 1000
        while (seen := self._asked(script, argument)) != expected and time.monotonic() < deadline:
            self.page.wait_for_timeout(20)
        assert seen == expected

    def comes_to(self, script: str) -> None:
        """Wait until a condition in the page holds."""
        self._becomes(True, script)

    def _asked(self, script: str, argument: object) -> object:
        try:
            return self.page.evaluate(script, argument)
        except Error as error:  # the page went on to another while it was asked
            return str(error)

    def shows(self, found: Mapping[str, Any]) -> None:
        """Every region and text of an answer stands on the page, and the page offers them as a result."""
        assert found["ok"], found
        regions = {name: [text_of(html)] for name, html in found["regions"].items()}
        texts = {name: text for name, text in found["texts"].items() if name != "announce"}
        shown = {name: [" ".join(text.split())] for name, text in texts.items()}
        self._becomes([regions, shown, True], _SHOWN, [list(regions), shown])
        self._asked(_ADDRESSED, None)

    def shows_inputs(self, inputs: Mapping[str, str]) -> None:
        """The form holds these texts, defaults elsewhere, and marks exactly these as changed."""
        values = {field.key: inputs.get(field.key, field.default) for field in PLAN_INPUTS}
        self._becomes(values, _VALUES, _DEFAULTS)
        self.marks(inputs)

    def marks(self, keys: Iterable[str]) -> None:
        """Exactly these fields are marked as different from their defaults."""
        self._becomes(sorted(keys), _MARKED)

    def shows_everything(self, reference: str = "", **inputs: str) -> None:
        """Figures, details and pictures of these inputs, as CPython computes them."""
        self.shows(answer(reference=reference, **inputs))
        self.shows(answer("details", **inputs))
        self.shows(answer("charts", **inputs))

    def link(self) -> str:
        """The query that the address bar shows."""
        return str(self.page.evaluate("() => location.search"))
