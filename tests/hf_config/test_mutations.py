"""Broken configurations: always an Architecture with a plan, or a refusal that names the fields.

1,000 cases by default; ENGINEMEM_MUTATIONS sets the number (10,000 before a release).
"""

import copy
import json
import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enginemem import Architecture, FieldError, InvalidInputs, Scenario, compare
from public_configs import CONFIGS

CASES = int(os.environ.get("ENGINEMEM_MUTATIONS", "1000"))
SMALL = sorted(name for name in CONFIGS if len(str(CONFIGS[name])) < 8_000)


def nested(depth: int) -> object:
    value: object = {"hidden_size": 1}
    for _ in range(depth):
        value = {"text_config": value}
    return value


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 3, 7, 127, 2**31, 10**30, -(10**30)]),
    st.sampled_from([0.5, 1e308, float("nan"), float("inf"), -0.0]),
    st.sampled_from(["", "auto", "bfloat16", "llama", "full_attention", "x" * 10_000, "re:(a+)+$", "*" * 50]),
    st.sampled_from(["[]", "{}", "[[]]", "[null]", '["full_attention"]', "[-1, -1, 3]", '{"": {}}']).map(json.loads),
    st.just(5_000).map(lambda count: [-1] * count),
    st.builds(nested, st.sampled_from([1, 50, 5_000])),
)


def places(config: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in config.items():
        found.append((*path, key))
        if isinstance(value, dict) and len(path) < 3:
            found += places(value, (*path, key))
    return found


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    config = copy.deepcopy(CONFIGS[draw(st.sampled_from(SMALL))])
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(places(config)))
        parent: Any = config
        for key in path[:-1]:
            parent = parent.get(key) if isinstance(parent, dict) else None
        if not isinstance(parent, dict):
            continue
        action = draw(st.sampled_from(["drop", "odd", "odd", "graft", "scale"]))
        if action == "drop":
            parent.pop(path[-1], None)
        elif action == "odd":
            parent[path[-1]] = draw(ODD)
        elif action == "scale" and isinstance(parent.get(path[-1]), int):
            parent[path[-1]] = parent[path[-1]] * draw(st.sampled_from([-1, 0, 2, 3, 1000]))
        else:
            other = CONFIGS[draw(st.sampled_from(SMALL))]
            parent.update(
                {key: copy.deepcopy(other[key]) for key in draw(st.lists(st.sampled_from(sorted(other)), max_size=3))}
            )
        if not config:
            break
    return config


def outcome(config: dict[str, Any]) -> tuple[Architecture | None, list[FieldError]]:
    try:
        return Architecture.from_hf_config(config), []
    except InvalidInputs as refusal:
        return None, refusal.errors


@settings(max_examples=CASES, deadline=2_000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(broken(), st.sampled_from([1, 2, 4, 8]))
def test_a_broken_configuration_is_planned_or_refused_by_name(config: dict[str, Any], tp: int) -> None:
    model, errors = outcome(config)
    assert all(error.field.startswith("config") and len(str(error)) < 5_000 for error in errors)
    if model is None:
        assert errors
        return
    assert model.parameters > 0
    if model.tensor_parallel_problem(tp) is not None:
        return
    for plan in compare(Scenario(gpu="h200-sxm", tp=tp).with_model(model)).engines.values():
        assert plan.status == "ok" or plan.reason
