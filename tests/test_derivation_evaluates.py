"""The step test: every expression of every step evaluates from its operands to its value, exactly."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest

from enginemem.derivation import Step, check_ids, evaluate
from enginemem.release import load_release
from enginemem.scenario import Scenario
from random_scenarios import random_scenario

ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt_llm"}
SCENARIOS = 10_000
SHARES = 10
SEED = 20261130
# Steps without a source restate an input or an assumption of the user.
UNSOURCED = ("input", "assumption", "traffic")


def steps_of(engine: str, share: int) -> Iterator[tuple[dict[str, object], list[Step]]]:
    """Plans of one share of the random scenarios: the inputs and the steps."""
    package = import_module(f"enginemem.engines.{ENGINES[engine]}")
    release = load_release(engine)
    rng = random.Random(f"{SEED}/{share}")
    for _ in range(SCENARIOS // SHARES):
        inputs = random_scenario(rng)
        yield inputs, package.plan(Scenario(**inputs), release).steps


def same(left: Any, right: Any) -> bool:
    """Equal and of one kind: 68 may be a Fraction, but a float is no count and True is not 1."""
    kinds = [Fraction if type(value) is int else type(value) for value in (left, right)]
    return kinds[0] is kinds[1] and bool(left == right)


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("engine", ENGINES)
def test_every_step_evaluates_to_its_value(engine: str, share: int) -> None:
    rules = import_module(f"enginemem.engines.{ENGINES[engine]}").RULES
    for inputs, steps in steps_of(engine, share):
        check_ids(steps)
        for step in steps:
            value = evaluate(step, rules)
            assert same(value, step.value), f"{step.id}: {step.expression} is {value}, not {step.value}; {inputs}"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_step_has_units_sources_and_its_engine_in_front(engine: str) -> None:
    for inputs, steps in steps_of(engine, 0):
        for step in steps:
            assert step.id.startswith(f"{engine}."), step.id
            assert isinstance(step.unit, str), step.id
            assert step.label, step.id
            assert all(isinstance(unit, str) for _, unit in step.operands.values()), (step.id, inputs)
            assert step.sources or step.id.split(".")[1] in UNSOURCED, step.id
            # One style in all ledgers: a note is a sentence or several.
            assert step.note is None or (step.note[0] == step.note[0].upper() and step.note.endswith(".")), step.note


@pytest.mark.parametrize("engine", ENGINES)
def test_the_random_scenarios_reach_every_status(engine: str) -> None:
    """A step test that never leaves the smooth path would prove little."""
    package, release = import_module(f"enginemem.engines.{ENGINES[engine]}"), load_release(engine)
    rng = random.Random(SEED)
    found = Counter(package.plan(Scenario(**random_scenario(rng)), release).status for _ in range(500))
    assert found["ok"] > 50
    assert found["not_modeled"] > 5
    assert found["does_not_fit"] > 5
