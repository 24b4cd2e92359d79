"""Links are promises: canonical, exact both ways, nothing dropped, old versions upgraded."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginemem import link
from enginemem.architecture import model_ids
from enginemem.hardware import gpu_ids
from enginemem.inputs import Input, InvalidInputs
from enginemem.link import decode, encode, query_of
from enginemem.release import PINNED
from enginemem.scenario import PLAN_INPUTS, Scenario

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "link-v1.json"


def fields_of(text: str) -> set[str]:
    with pytest.raises(InvalidInputs) as caught:
        decode(text)
    return {error.field for error in caught.value.errors}


def test_the_default_scenario_needs_the_version_only() -> None:
    assert encode(Scenario()) == "?v=1"
    assert decode("?v=1") == Scenario()


def test_the_order_is_the_table_and_defaults_are_left_out() -> None:
    scenario = Scenario(
        prompt=4096, gpu="h200-sxm", **{"sglang.page_size": 64, "vllm.max_num_seqs": 256}, max_tokens=2000
    )
    assert encode(scenario) == "?v=1&gpu=h200-sxm&prompt=4096&vllm.max_num_seqs=256&sglang.page_size=64"


def test_an_explicit_knob_is_kept_even_when_it_equals_the_engines_default() -> None:
    assert encode(Scenario(**{"tensorrt-llm.max_batch_size": 2048})) == "?v=1&tensorrt-llm.max_batch_size=2048"


def test_a_whole_url_is_accepted_and_its_fragment_left_off() -> None:
    assert decode("https://example.org/calculator/?v=1&prompt=5#steps") == Scenario(prompt=5)
    assert query_of("prompt=5") == "prompt=5"


def test_numbers_in_links_are_plain() -> None:
    assert encode(Scenario(prompt="32k", cuda_total="79.19 GiB")) == "?v=1&cuda_total=79.19GiB&prompt=32000"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("?v=1&promt=5", {"promt"}),
        ("?v=1&prompt=x", {"prompt"}),
        ("?v=99&prompt=5", {"v"}),
        ("?v=0", {"v"}),
        ("?v=1.0", {"v"}),
        ("?v=", {"v"}),
        ("?v=1&prompt=5&prompt=6", {"prompt"}),
        ("?v=1&prompt=", {"prompt"}),
        ("?v=1&promt=5&gpu=zx81&max_tokens=-3", {"promt", "gpu", "max_tokens"}),
        ("?v=1&&&", {"link"}),
        ("?v=1&prompt", {"link"}),
        ("?v=1&mean_output=3000", {"mean_output"}),
        ("?v=" + "9" * 5000, {"v"}),
    ],
)
def test_a_broken_link_is_explained_and_nothing_is_dropped(text: str, fields: set[str]) -> None:
    assert fields_of(text) == fields


def _values(field: Input) -> st.SearchStrategy[str]:
    if field.choices is not None:
        return st.sampled_from(list(field.choices()))
    if field.kind == "flag":
        return st.sampled_from(["true", "false"])
    if field.kind == "counts":
        return st.lists(st.integers(1, 4096), min_size=1, max_size=5).map(lambda items: ",".join(map(str, items)))
    if field.kind == "quantity":
        return st.integers(1, 10**12).map(lambda number: f"{number}B") | st.sampled_from(["1.25GiB", "40.5 GB", "7MiB"])
    if field.kind == "decimal":
        return st.integers(1, 1000).map(lambda thousandths: f"0.{thousandths:04d}")
    return st.integers(1, 10**6).map(str)


GIVEN = st.fixed_dictionaries({}, optional={field.key: _values(field) for field in PLAN_INPUTS})


@given(GIVEN)
@settings(max_examples=500, deadline=None)
def test_every_valid_scenario_survives_the_round_trip(inputs: dict[str, str]) -> None:
    try:
        scenario = Scenario(**inputs)
    except InvalidInputs:
        return
    text = encode(scenario)
    assert decode(text) == scenario
    assert encode(decode(text)) == text


def test_an_older_version_is_upgraded_with_its_old_defaults_written_out() -> None:
    def from_zero(values: dict[str, str]) -> dict[str, str]:
        renamed = {"prompt" if key == "input_tokens" else key: value for key, value in values.items()}
        return {"max_tokens": "512", "mean_output": "100", **renamed}

    upgraders = {0: from_zero}
    opened = decode("?v=0&input_tokens=700&mean_output=50", upgraders=upgraders)
    assert opened == Scenario(prompt=700, max_tokens=512, mean_output=50)
    assert encode(opened).startswith("?v=1&")


def test_a_chain_of_upgraders_runs_in_order() -> None:
    upgraders = {
        0: lambda values: {**values, "prompt": "1"},
        1: lambda values: {**values, "prompt": values["prompt"] + "0"},
    }
    assert decode("?v=0", version=2, upgraders=upgraders).prompt == 10
    assert decode("?v=1&prompt=4", version=2, upgraders=upgraders).prompt == 40
    with pytest.raises(InvalidInputs):
        decode("?v=3", version=2, upgraders=upgraders)


def test_version_1_is_what_it_was_when_it_was_frozen() -> None:
    """A change here breaks links that people hold: add version 2 and an upgrader instead of editing the snapshot."""
    frozen = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    assert link.VERSION == 1
    assert {field.key: field.default for field in PLAN_INPUTS} == frozen["defaults"]
    assert list(PLAN_INPUTS.keys) == frozen["keys"]
    assert {
        field.key: list(field.choices()) for field in PLAN_INPUTS if field.choices and field.kind == "choice"
    } == frozen["choices"]
    assert dict(PINNED) == frozen["releases"]
    assert set(frozen["gpus"]) <= set(gpu_ids())
    assert set(frozen["models"]) <= set(model_ids())
