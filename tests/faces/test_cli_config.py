"""A model of one's own on the command line: files, standard input, errors by field and by flag."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from enginemem import Architecture, Scenario, compare
from enginemem.cli import main
from public_configs import CONFIGS

DEEPSEEK = CONFIGS["deepseek-ai--DeepSeek-V3"]


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(DEEPSEEK), encoding="utf-8")
    return str(path)


def test_a_file_takes_the_place_of_the_preset(config: str) -> None:
    document = json.loads(run("compare", "--config", config, "--gpu", "h200-sxm", "--tp", "8", "--json").output)
    scenario = Scenario(gpu="h200-sxm", tp=8).with_model(Architecture.from_hf_config(DEEPSEEK))
    assert document == json.loads(compare(scenario).to_json())
    assert document["scenario"]["model"] == "config.json"
    assert document["configuration"]["config"]["kv_lora_rank"] == DEEPSEEK["kv_lora_rank"]
    assert document["engines"]["vllm"]["kv_bytes_per_token"] == 61 * 576 * 2


def test_standard_input_gives_the_same(config: str) -> None:
    by_file = run("compare", "--config", config, "--csv")
    assert next(csv.reader(io.StringIO(by_file.output)))[0] == "row"
    assert run("compare", "--config", "-", "--csv", stdin=json.dumps(DEEPSEEK)).output == by_file.output


def test_a_quantisation_file_that_does_not_count_is_said(config: str, tmp_path: Path) -> None:
    quant = tmp_path / "hf_quant_config.json"
    quant.write_text('{"quantization": {"quant_algo": "NVFP4"}}', encoding="utf-8")
    both = ("--config", config, "--quant-config", str(quant))
    for command in (("compare",), ("explain", "vllm")):
        assert "hf_quant_config.json was not read" in run(*command, *both).output
        assert "was not read" not in run(*command, "--config", config).output
    assert (
        json.loads(run("compare", *both, "--json").output)["engines"]
        == json.loads(run("compare", "--config", config, "--json").output)["engines"]
    )
    link = run("link", *both).output.strip()
    assert "hf_quant_config.json was not read" in run("compare", "--link", link).output


def test_texts_name_the_file_instead_of_the_preset(config: str) -> None:
    for form in ([], ["--markdown"]):
        output = run("compare", "--config", config, "--prompt", "4k", *form).output
        assert "?v=1&prompt=4000" in output
        assert "--config config.json of DeepseekV3ForCausalLM" in output
        assert "Llama" not in output


def test_other_commands_take_a_file_too(config: str) -> None:
    explained = run("explain", "sglang", "--config", config, "--gpu", "h200-sxm", "--tp", "8").output
    assert "DeepseekV3ForCausalLM" in explained
    link = run("link", "--config", config, "--gpu", "h200-sxm").output.strip()
    assert link.startswith("?v=1&gpu=h200-sxm#config=")
    again = run("compare", "--link", link, "--json").output
    assert json.loads(again) == json.loads(run("compare", "--config", config, "--gpu", "h200-sxm", "--json").output)


def test_a_flag_replaces_the_model_that_a_link_carries(config: str) -> None:
    link = run("link", "--config", config, "--prompt", "5").output.strip()
    assert run("link", "--link", link, "--model", "qwen3-8b").output.strip() == "?v=1&model=qwen3-8b&prompt=5"


def test_bad_fields_exit_2_beside_bad_flags() -> None:
    result = run("compare", "--config", "-", "--prompt", "zz", stdin=json.dumps({**DEEPSEEK, "hidden_size": "x"}))
    assert result.exit_code == 2
    assert "error: config.hidden_size: 'x' is not allowed\n  allowed: a whole number from" in result.output
    assert "--prompt (prompt): 'zz'" in result.output


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (["--config", "/no/such/file"], None, "--config: '/no/such/file' is not allowed"),
        (["--config", "/"], None, "--config: '/' is not allowed"),
        (["--config", "-"], "{", "no JSON from line 1, column 2 on"),
        (["--config", "-"], " " * 600_000, "at most 500,000 characters"),
        (["--config", "-"], '{"model_type": "lama"}', "did you mean llama?"),
        (["--config", "-", "--quant-config", "-"], "{}", "--quant-config: '-'"),
        (["--quant-config", "x.json"], None, "beside --config only"),
        (["--config", "-", "--model", "phi-4"], "{}", "names a preset as well"),
        (["--config", "-", "--set", "model=phi-4"], "{}", "names a preset as well"),
        (["--link", "?v=1#config=QlpoOTFB"], None, "config: a fragment of 8 characters"),
    ],
)
def test_what_cannot_be_read_exits_2_by_name(arguments: list[str], stdin: str | None, said: str) -> None:
    result = run("compare", *arguments, stdin=stdin)
    assert result.exit_code == 2
    assert said in result.output


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x80\xff" * 100)
    result = run("compare", "--config", str(path))
    assert result.exit_code == 2
    assert "a file of UTF-8 text" in result.output


def test_the_help_tells_of_the_files() -> None:
    output = run("compare", "--help").output
    assert "--config FILE" in output
    assert "--quant-config FILE" in output
