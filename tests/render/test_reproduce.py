"""Lines that make a comparison again carry every input, and name the files of an own model."""

from __future__ import annotations

import json
import pathlib
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import enginemem
from enginemem import Architecture, Scenario
from enginemem.cli import main
from enginemem.comparison import ENGINES
from enginemem.launch import launch
from enginemem.release import load_release
from enginemem.render.reproduce import command_line, inputs_line, python_line
from public_configs import CONFIGS

OWN = Architecture.from_hf_config(CONFIGS["Qwen--Qwen3-8B"])
QUANT: dict[str, Any] = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}


def test_reproducing_lines_carry_every_input() -> None:
    scenario = Scenario(max_tokens=300, kv_dtype="fp8", **{"vllm.max_num_seqs": 64})
    assert command_line(scenario) == "enginemem compare --kv-dtype fp8 --max-tokens 300 --set vllm.max_num_seqs=64"
    assert python_line(scenario) == (
        "enginemem.compare(enginemem.Scenario(kv_dtype='fp8', max_tokens=300, **{'vllm.max_num_seqs': '64'}))"
    )
    assert inputs_line(scenario) == (scenario.link(), "")


def test_an_own_model_is_named_by_its_files() -> None:
    scenario = Scenario.of_model(OWN, model="phi-4", tp=2)
    assert command_line(scenario) == "enginemem compare --config config.json --tp 2"
    assert inputs_line(scenario)[1] == " with --config config.json of Qwen3ForCausalLM"
    both = Architecture.from_hf_config(CONFIGS["Qwen--Qwen3-8B"], hf_quant_config=QUANT)
    assert "--quant-config hf_quant_config.json" in command_line(Scenario.of_model(both))


def test_the_lines_compute_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario.of_model(OWN, prompt=4096, **{"vllm.max_num_seqs": 64})
    expected = json.loads(enginemem.compare(scenario).to_json())
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["Qwen--Qwen3-8B"]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(main, [*shlex.split(command_line(scenario))[1:], "--json"]).output
    computed = eval(python_line(scenario), {"enginemem": enginemem, "json": json, "pathlib": pathlib})
    assert json.loads(printed) == expected
    assert json.loads(computed.to_json()) == expected


def test_a_command_for_a_model_without_a_hub_id_says_what_to_put_there() -> None:
    for column in ENGINES:
        own = launch(Scenario.of_model(OWN), load_release(column))
        assert "./model" in shlex.split(own.command)
        assert any("In place of ./model" in note for note in own.notes)
        named = launch(Scenario.of_model(OWN._replace(hub_id="org/Model")), load_release(column))
        assert "org/Model" in shlex.split(named.command)
        assert any("The configuration calls its model so" in note for note in named.notes)
