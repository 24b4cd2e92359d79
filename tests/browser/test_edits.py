"""An edit brings the figures that the same inputs give in CPython; what is not understood is named and changes nothing."""

from __future__ import annotations

import random

from playwright.sync_api import expect

import random_scenarios
from browser.calculator import Calculator, answer
from enginemem.comparison import ENGINES
from enginemem.inputs import Input
from enginemem.scenario import PLAN_INPUTS

OTHER_VALUES = {
    "gpu": "h200-sxm", "cuda_total": "60GiB", "smi_total": "90000MiB", "tp": "2", "model": "llama-3.1-70b",
    "runtime": "4.5GB", "preload": "1GiB", "max_model_len": "8192", "prompt": "8000", "max_tokens": "512", "mean_output": "200",
    "vllm.gpu_memory_utilization": "0.8", "vllm.watermark": "0.05", "vllm.kv_cache_memory_bytes": "20GB",
    "sglang.mem_fraction_static": "0.7", "sglang.chunked_prefill_size": "-1", "sglang.schedule_conservativeness": "0.5",
    "tensorrt-llm.free_gpu_memory_fraction": "0.5", "tensorrt-llm.cuda_graph_batch_sizes": "1,2,4,96",
}  # fmt: skip
"""A value that differs from the default; the other counts take 64, the other choices their last name."""


def other_value(field: Input) -> str:
    if field.key in OTHER_VALUES:
        return OTHER_VALUES[field.key]
    if field.choices is not None:
        return field.choices()[-1]
    return "false" if field.kind == "flag" else "64"


def test_an_edit_before_python_has_started_is_answered_too(calculator: Calculator) -> None:
    calculator.open().set("max_tokens", "300")
    calculator.shows_everything(max_tokens="300")


def test_every_input_can_be_set_is_marked_and_can_be_reset_alone(calculator: Calculator) -> None:
    calculator.open("?v=1&prompt=1000&tensorrt-llm.max_batch_size=100").ready()
    kept = {"prompt": "1000", "tensorrt-llm.max_batch_size": "100"}
    calculator.shows(answer(**kept))
    for field in [field for field in PLAN_INPUTS if field.key not in kept]:
        value = other_value(field)
        calculator.set(field.key, value)
        calculator.shows(answer(**kept, **{field.key: value}))
        calculator.marks([*kept, field.key])
        if field.section in ENGINES:
            count = 2 if field.section == "tensorrt-llm" else 1
            expect(calculator.page.locator(f'[data-count="{field.section}"]')).to_have_text(f"{count} set")
        calculator.reset(field.key)
        expect(calculator.control(field.key)).to_have_value(field.default)
        expect(calculator.control(field.key)).to_be_focused()
        calculator.marks(kept)
    for key in kept:
        calculator.reset(key)
    calculator.shows_everything()
    calculator.shows_inputs({})


def test_reset_all_brings_the_defaults_back(calculator: Calculator) -> None:
    calculator.open("?v=1&prompt=9000&vllm.max_num_seqs=64&gpu=b200").ready()
    calculator.marks(["prompt", "vllm.max_num_seqs", "gpu"])
    calculator.page.locator("#em-reset-all").click()
    calculator.shows_everything()
    calculator.shows_inputs({})
    expect(calculator.page.locator("#em-reset-all")).to_be_disabled()
    assert calculator.link() == ""


def random_edit(rng: random.Random) -> tuple[str, str]:
    """A field and a text that is valid in some scenario, though perhaps not beside the other inputs."""
    drawn = {key: value for key, value in random_scenarios.random_scenario(rng).items() if key in PLAN_INPUTS}
    key = rng.choice(sorted(drawn))
    value = drawn[key]
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return key, text.lower() if PLAN_INPUTS[key].kind == "flag" else text


def test_a_walk_of_random_edits_shows_what_cpython_computes(calculator: Calculator) -> None:
    """Valid edits give CPython's figures; the others leave the last good result, with a message at each bad field."""
    rng = random.Random(20261130)
    calculator.open().ready()
    inputs: dict[str, str] = {}
    good = answer()
    bad = 0
    for _ in range(40):
        key, text = random_edit(rng)
        calculator.set(key, text)
        before, inputs = inputs, {**inputs, key: text}
        inputs = {name: kept for name, kept in inputs.items() if kept != PLAN_INPUTS[name].default}
        found = answer(**inputs)
        if found["ok"]:
            good = found
            expect(calculator.page.locator("#em-form .em-error:not(:empty)")).to_have_count(0)
        else:
            bad += 1
            for error in found["errors"]:
                expect(calculator.row(error["field"]).locator(".em-error")).to_have_text(error["message"])
        calculator.shows(good)
        if not found["ok"]:
            inputs = before
            calculator.set(key, inputs.get(key, PLAN_INPUTS[key].default))
            calculator.shows(good)
    assert 1 <= bad <= 20


def test_edits_beside_a_bad_field_are_kept_and_count_once_it_is_good_again(calculator: Calculator) -> None:
    calculator.open("?v=1&tp=8").ready()
    calculator.set("mean_output", "9000")
    expect(calculator.row("mean_output").locator(".em-error")).to_have_text(
        answer(tp="8", mean_output="9000")["errors"][0]["message"]
    )
    calculator.set("tp", "4")
    calculator.set("prompt", "1000")
    calculator.control("runtime").focus()
    expect(calculator.control("tp")).to_have_value("4")
    calculator.set("max_tokens", "10000")
    calculator.shows_everything(tp="4", prompt="1000", max_tokens="10000", mean_output="9000")


def test_a_bad_value_is_explained_beside_its_field_and_the_last_result_stays(calculator: Calculator) -> None:
    calculator.open().ready()
    calculator.set("max_tokens", "4000")
    good = answer(max_tokens="4000")
    calculator.shows(good)
    for key, text in (("prompt", "many"), ("runtime", "3"), ("max_tokens", "-5")):
        kept = calculator.control(key).input_value()
        calculator.set(key, text)
        (error,) = answer(**{"max_tokens": "4000", key: text})["errors"]
        message = calculator.row(key).locator(".em-error")
        expect(message).to_have_text(error["message"])
        assert text in error["message"]
        expect(calculator.control(key)).to_have_attribute("aria-invalid", "true")
        expect(calculator.page.locator("#em-app")).to_have_attribute("data-stale", "")
        calculator.shows(good)
        calculator.set(key, kept)
        expect(message).to_be_empty()
        expect(calculator.page.locator("#em-app")).not_to_have_attribute("data-stale", "")


def test_every_bad_field_is_named_at_once(calculator: Calculator) -> None:
    calculator.open().ready()
    calculator.set("prompt", "x")
    calculator.set("runtime", "y")
    errors = {error["field"]: error["message"] for error in answer(prompt="x", runtime="y")["errors"]}
    assert errors.keys() == {"prompt", "runtime"}
    for key, message in errors.items():
        expect(calculator.row(key).locator(".em-error")).to_have_text(message)


def test_a_pasted_short_form_is_understood_and_written_out(calculator: Calculator) -> None:
    calculator.open().ready()
    for typed, meant in (("32k", "32000"), ("1e5", "100000"), ("32Ki", "32768"), ("12,000", "12000")):
        calculator.control("prompt").fill(typed)
        calculator.shows(answer(prompt=meant))
        calculator.control("max_tokens").focus()
        expect(calculator.control("prompt")).to_have_value(meant)


def test_arrow_keys_step_through_sensible_values(calculator: Calculator) -> None:
    calculator.open().ready()
    control = calculator.control("prompt")
    steps = [int(step) for step in (control.get_attribute("data-steps") or "").split(",")]
    above = min(step for step in steps if step > 2000)
    below = max(step for step in steps if step < 2000)
    control.focus()
    control.press("ArrowUp")
    expect(control).to_have_value(str(above))
    calculator.shows(answer(prompt=str(above)))
    control.press("ArrowDown")
    expect(control).to_have_value("2000")
    control.press("ArrowDown")
    expect(control).to_have_value(str(below))
    calculator.shows(answer(prompt=str(below)))


def test_the_newest_of_many_quick_edits_wins(calculator: Calculator) -> None:
    calculator.open().ready()
    control = calculator.control("max_tokens")
    control.press("End")
    control.press_sequentially("00", delay=0)
    for _ in range(3):
        control.press("Backspace", delay=0)
    control.press_sequentially("9", delay=0)
    expect(control).to_have_value("2009")
    calculator.shows_everything(max_tokens="2009")


def test_a_changed_figure_shows_its_old_value_without_moving_the_layout(calculator: Calculator) -> None:
    calculator.open().ready()
    figure = calculator.page.locator('[data-region="cards"] [data-fig="sglang.running"]')
    table = calculator.region("table")
    calculator.control("max_tokens").focus()
    before, place = figure.inner_text(), table.bounding_box()
    calculator.control("max_tokens").fill("2100")
    calculator.shows(answer(max_tokens="2100"))
    expect(figure).to_have_attribute("data-was", before)
    assert table.bounding_box() == place
    unchanged = calculator.page.locator('[data-region="cards"] [data-fig="vllm.kv_tokens"]')
    assert unchanged.get_attribute("data-was") is None


def test_differences_stand_beside_the_values_on_request(calculator: Calculator) -> None:
    calculator.open().ready()
    reference = ""
    for reference in map(str, ENGINES):
        calculator.page.locator(f'[name="em-reference"][value="{reference}"]').check()
        calculator.shows(answer(reference=reference))
    calculator.set("max_tokens", "512")
    calculator.shows(answer(reference=reference, max_tokens="512"))
    expect(calculator.region("table").locator(".em-gap").first).to_be_visible()
    calculator.page.locator('[name="em-reference"][value=""]').check()
    calculator.shows(answer(max_tokens="512"))
    expect(calculator.region("table").locator(".em-gap")).to_have_count(0)


def test_what_is_not_computed_says_why(calculator: Calculator) -> None:
    calculator.open().ready()
    for inputs, status in (
        ({"gpu": "l4", "model": "llama-3.1-70b"}, "Does not fit"),
        ({"gpu": "a100-80-pcie"}, "Not modeled"),
        ({"prompt": "200000"}, "Refused"),
    ):
        for key, text in inputs.items():
            calculator.set(key, text)
        calculator.shows(answer(**inputs))
        verdict = calculator.region("cards").locator(".em-card", has_text=status).first
        expect(verdict).to_be_visible()
        expect(verdict.locator(".em-small")).not_to_be_empty()
        for key in inputs:
            calculator.set(key, PLAN_INPUTS[key].default)


def test_an_open_ledger_stays_open_and_follows_the_edit(calculator: Calculator) -> None:
    calculator.open().ready()
    panel = calculator.page.locator("#em-panel-sglang")
    panel.locator("> summary").click()
    first = calculator.region("ledger-sglang").locator("> *").first
    expect(first).to_contain_text("start-up log")
    calculator.set("runtime", "2GB")
    calculator.set("max_tokens", "777")
    calculator.shows_everything(runtime="2GB", max_tokens="777")
    expect(panel).to_have_attribute("open", "")


def test_after_an_edit_the_counts_are_announced(calculator: Calculator) -> None:
    calculator.open().ready()
    calculator.set("max_tokens", "300")
    expect(calculator.page.locator("#em-announce")).to_have_text(answer(max_tokens="300")["texts"]["announce"])
