"""Answers are computed before their question, and none of them is shown in the place of another."""

from __future__ import annotations

import json

import pytest

from browser.calculator import Calculator, answer
from enginemem.scenario import PLAN_INPUTS

_WATCH_WORKER = """
const Native = Worker;
window.asked = [];
window.answered = new Set();
window.Worker = class extends Native {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => window.answered.add(data.id));
  }
  postMessage(message) {
    if (message.type === "request") window.asked.push(JSON.parse(message.text));
    super.postMessage(message);
  }
};
"""


def figures_of(inputs: dict[str, str]) -> str:
    """A condition of the page: the figures of these inputs were asked of Python, once, and have been answered."""
    return (
        "() => { const found = asked.filter(({ part, inputs }) => part === 'figures' && JSON.stringify(inputs) === "
        f"JSON.stringify({json.dumps(inputs)})); return found.length === 1 && answered.has(found[0].id); }}"
    )


@pytest.mark.parametrize(
    ("key", "pressed", "text"),
    [
        ("prompt", "ArrowUp", "8000"),
        ("max_tokens", "ArrowDown", "1000"),
        ("prompt", "7", "40007"),
        ("prompt", "Backspace", "400"),
    ],
)
def test_the_next_key_finds_its_answer_computed_ahead(
    calculator: Calculator, key: str, pressed: str, text: str
) -> None:
    """With the focus on a field, what the next key may make of it is computed; the key asks for no figures of its own."""
    page = calculator.page
    page.add_init_script(_WATCH_WORKER)
    calculator.open("?v=1&prompt=4000").ready()
    calculator.shows_everything(prompt="4000")
    calculator.control(key).focus()
    calculator.control(key).press("End")
    expected = without_defaults({"prompt": "4000"} | {key: text})
    calculator.comes_to(figures_of(expected))
    page.keyboard.press(pressed)
    calculator.shows(answer(**expected))
    assert page.evaluate(f"({figures_of(expected)})()")


def without_defaults(inputs: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in inputs.items() if text != PLAN_INPUTS[key].default}


def test_an_answer_that_was_kept_is_not_overtaken_by_an_older_question(calculator: Calculator) -> None:
    """Differences are asked for and taken back at once; the second answer was there already."""
    page = calculator.page
    page.add_init_script(_WATCH_WORKER)
    calculator.open().ready()
    calculator.control("prompt").focus()
    calculator.comes_to(figures_of({"prompt": "4000"}))
    page.keyboard.press("ArrowUp")
    calculator.shows_everything(prompt="4000")
    # Python is idle, so that the first of the two questions is on its way when the second comes.
    calculator.comes_to("() => asked.every(({ id }) => answered.has(id))")
    page.evaluate(
        "() => { for (const value of ['vllm', '']) document.querySelector(`[name=em-reference][value='${value}']`).click(); }"
    )
    page.wait_for_timeout(500)
    calculator.shows_everything(prompt="4000")
