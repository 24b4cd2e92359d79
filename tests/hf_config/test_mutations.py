"""Broken configurations: always an Architecture with a plan, or a refusal that names the fields.

1,000 cases by default; ENGINEMEM_MUTATIONS sets the number (10,000 before a release).
"""

import copy
import json
import os
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enginemem import Architecture, FieldError, InvalidInputs, Scenario, compare
from public_configs import CONFIGS

CASES = int(os.environ.get("ENGINEMEM_MUTATIONS", "1000"))
NAMES = sorted(CONFIGS)
PATIENCE = 2.0
"""Seconds for one file, on a slow machine too."""


def nested(depth: int) -> object:
    value: object = {"hidden_size": 1}
    for _ in range(depth):
        value = {"text_config": value}
    return value


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 3, 7, 127, 1_024, 2**31, 10**30, -(10**30)]),
    st.sampled_from([0.5, 1e308, float("nan"), float("inf"), -0.0]),
    st.sampled_from(["", "auto", "bfloat16", "llama", "full_attention", "x" * 10_000, "re:(a+)+$", "*" * 50, "1,2,3"]),
    st.sampled_from(["[]", "{}", "[[]]", "[null]", '["full_attention"]', "[-1, -1, 3]", '{"": {}}']).map(json.loads),
    st.just(5_000).map(lambda count: [-1] * count),
    st.just(5_000).map(lambda count: ["model.layers.*.mlp*down"] * count),
    st.builds(nested, st.sampled_from([1, 50, 5_000])),
)
Place = tuple[str | int, ...]


def places(value: Any, path: Place = ()) -> list[Place]:
    """Every place of a file down to the third level; of lists a few."""
    found: list[Place] = []
    entries = value.items() if isinstance(value, dict) else list(enumerate(value))[:3]
    for key, inner in entries:
        found.append((*path, key))
        if isinstance(inner, (dict, list)) and len(path) < 3:
            found += places(inner, (*path, key))
    return found


def at(config: Any, path: Place) -> Any:
    """The object or list at a place, None where an earlier change took it away."""
    for key in path:
        inside = key in config if isinstance(config, dict) else isinstance(config, list) and key in range(len(config))
        if not inside:
            return None
        config = config[key]
    return config


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    config = copy.deepcopy(CONFIGS[draw(st.sampled_from(NAMES))])
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(places(config)))
        parent, key = at(config, path[:-1]), path[-1]
        action = draw(st.sampled_from(["drop", "odd", "odd", "scale", "graft"]))
        if parent is None:
            continue
        if action == "drop":
            del parent[key]
        elif action == "odd":
            parent[key] = draw(ODD)
        elif action == "scale" and type(parent[key]) is int:
            parent[key] *= draw(st.sampled_from([-1, 0, 2, 3, 1000]))
        elif isinstance(parent, dict):
            other = CONFIGS[draw(st.sampled_from(NAMES))]
            keys = draw(st.lists(st.sampled_from(sorted(other)), max_size=3))
            parent.update({key: copy.deepcopy(other[key]) for key in keys})
        if not config:
            break
    return config


def outcome(config: dict[str, Any], quantised: Any = None) -> tuple[Architecture | None, list[FieldError]]:
    try:
        return Architecture.from_hf_config(config, hf_quant_config=quantised), []
    except InvalidInputs as refusal:
        return None, refusal.errors


@settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(broken(), st.sampled_from([1, 2, 4, 8]))
def test_a_broken_configuration_is_planned_or_refused_by_name(config: dict[str, Any], tp: int) -> None:
    start = time.process_time()
    model, errors = outcome(config)
    assert all(error.field.startswith("config") and len(str(error)) < 5_000 for error in errors)
    if model is None:
        assert errors
        assert time.process_time() - start < PATIENCE
        return
    assert model.parameters > 0
    if model.tensor_parallel_problem(tp) is None:
        for plan in compare(Scenario(gpu="h200-sxm", tp=tp).with_model(model)).engines.values():
            assert plan.status == "ok" or plan.reason
    # Reading and three plans, each with its floors.
    assert time.process_time() - start < 4 * PATIENCE


@pytest.mark.parametrize("name", NAMES)
def test_an_absurd_number_of_layers_is_refused_at_once_and_takes_no_memory(name: str) -> None:
    config = copy.deepcopy(CONFIGS[name])
    for place in (config, *[value for value in config.values() if isinstance(value, dict)]):
        if "num_hidden_layers" in place:
            place["num_hidden_layers"] = 10**9
        if "layers_block_type" in place:
            place["layers_block_type"] = ["mamba"] * 10**5
        if "hybrid_override_pattern" in place:
            place["hybrid_override_pattern"] = "M" * 10**6
    tracemalloc.start()
    start = time.process_time()
    model, errors = outcome(config)
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model is None
    assert any(field in str(error.field) for error in errors for field in ("layers", "pattern", "block_type"))
    assert seconds < PATIENCE
    assert peak < 50_000_000


QUANT_FIELDS = ["quant_algo", "kv_cache_quant_algo", "exclude_modules", "quantized_layers", "group_size", "ignore"]
QUANT_VALUES = st.one_of(
    ODD,
    st.sampled_from(["NVFP4", "FP8", "MIXED_PRECISION", "FP8_PB_WO"]),
    st.sampled_from([["lm_head"], ["model.layers.*"], [3], ["re:("], {"layers.0.mlp": {"quant_algo": "NVFP4"}}]),
)


@settings(max_examples=max(CASES // 5, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(QUANT_FIELDS), QUANT_VALUES), st.booleans(), st.sampled_from(NAMES))
def test_a_broken_quantisation_file_is_read_or_refused_by_name(facts: Any, inside: bool, name: str) -> None:
    start = time.process_time()
    extra = {"producer": {"name": "modelopt"}, "quantization": facts} if inside else facts
    model, errors = outcome(CONFIGS[name], extra)
    assert (model is None) == bool(errors)
    assert model is None or model.inventory.stored_bytes > 0
    assert all(error.field.startswith("hf_quant_config") for error in errors)
    assert time.process_time() - start < PATIENCE


@pytest.mark.parametrize(
    "patterns",
    [
        [f"model.layers.*.mlp*{index}" for index in range(20_000)],
        ["re:(.|..)+Z"],
        ["re:(a+)+$"],
        ["re:.*.*.*.*.*.*.*.*Z"],
        ["re:.*.*.*7"] * 50,
        ["re:["],
        ["re:" + "a" * 1_000],
    ],
    ids=["many", "alternatives", "nested", "repeats", "indexed", "broken", "long"],
)
def test_patterns_that_could_run_for_ages_are_refused_by_name(patterns: list[str]) -> None:
    config = copy.deepcopy(CONFIGS["nvidia--GLM-5.2-NVFP4"])
    config["quantization_config"]["ignore"] = patterns
    start = time.process_time()
    _, errors = outcome(config)
    assert [error.field for error in errors] == ["config.quantization_config.ignore"]
    assert time.process_time() - start < 2 * PATIENCE


EVIL = ".*.*.*.*x"


@pytest.mark.parametrize(
    ("field", "quantization"),
    [
        ("dynamic", {"dynamic": {f"+:{EVIL}{index}": {"bits": 8} for index in range(1_000)}}),
        ("dynamic", {"dynamic": {f"-:{EVIL}{index}": {} for index in range(1_000)}}),
        ("modules_in_block_to_quantize", {"modules_in_block_to_quantize": [["mlp.up_proj"] * 100_000] * 1_000}),
        (
            "config_groups",
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    f"group_{index}": {"targets": [f"re:{EVIL}{index}"], "weights": {"num_bits": 8}}
                    for index in range(64)
                },
            },
        ),
    ],
)
def test_lists_that_could_run_for_ages_together_are_refused_by_name(field: str, quantization: dict[str, Any]) -> None:
    config = copy.deepcopy(CONFIGS["Qwen--Qwen3-235B-A22B"])
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4, "group_size": 128} | quantization
    start = time.process_time()
    model, errors = outcome(config)
    assert time.process_time() - start < PATIENCE
    assert model is None
    assert errors[0].field.startswith(f"config.quantization_config.{field}")
