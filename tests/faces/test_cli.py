"""The command line as people meet it: exit statuses, named errors, formats that machines read."""

import csv
import io
import json

import pytest
from click.testing import CliRunner, Result

from enginemem import Scenario, __version__, compare
from enginemem.cli import main
from enginemem.comparison import ENGINES
from enginemem.scenario import PLAN_INPUTS


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_compare_prints_the_published_baseline() -> None:
    result = run("compare")
    assert result.exit_code == 0
    for figure in (
        "209",
        "121",
        "113",
        "451,330",
        "412,441",
        "452,896",
        "59.16 GB",
        "54.06 GB",
        "59.36 GB",
        "22.38 ms",
    ):
        assert figure in result.output


def test_compare_json_is_the_librarys_document() -> None:
    result = run("compare", "--json", "--prompt", "4k")
    document = json.loads(result.output)
    assert document == json.loads(compare(Scenario(prompt=4000)).to_json())
    assert document["schema"] == 1
    assert document["enginemem_version"] == __version__
    assert document["scenario"]["prompt"] == 4000
    assert document["link"] == "?v=1&prompt=4000"
    assert list(document["engines"]) == ["vllm", "sglang", "tensorrt-llm"]


PROMISED = [
    "engine",
    "release",
    "status",
    "reason",
    "weights_bytes",
    "kv_pool_bytes",
    "kv_tokens",
    "kv_tokens_logged",
    "log_line",
    "page_tokens",
    "blocks",
    "kv_bytes_per_token",
    "kv_fixed_bytes_per_request",
    "running",
    "running_steady",
    "running_burst",
    "running_decayed",
    "binds",
    "largest_decode_graph",
    "in_graph",
    "graph_note",
    "step_token_budget",
    "decode_step_seconds",
    "output_tokens_per_second",
    "prefill_seconds",
    "resolved",
    "steps",
]


@pytest.mark.parametrize(
    "inputs", [{}, {"gpu": "t4"}, {"gpu": "mi300x"}, {"prompt": 200_000}, {"model": "llama-3.1-405b"}]
)
def test_every_promised_field_is_there_whatever_the_status(inputs: dict[str, object]) -> None:
    document = json.loads(compare(Scenario(**inputs)).to_json())
    for engine in document["engines"].values():
        assert set(PROMISED) <= set(engine)
        assert (engine["status"] == "ok") == (engine["reason"] is None)
        for name in (
            "weights_bytes",
            "kv_pool_bytes",
            "kv_tokens",
            "blocks",
            "running",
            "page_tokens",
            "step_token_budget",
        ):
            assert engine[name] is None or type(engine[name]) is int


def test_csv_holds_raw_values() -> None:
    table = list(csv.reader(io.StringIO(run("compare", "--csv").output)))
    values = {row[0]: row[1:] for row in table}
    assert values["KV pool per GPU"] == ["59156844919", "54059543075", "59362519615"]
    assert values["Running (published rule)"] == ["209", "121", "113"]


def test_markdown_is_a_table_with_the_link() -> None:
    output = run("compare", "--markdown").output
    assert "| KV tokens per replica | 451,330 | 412,441 | 452,896 |" in output
    assert "`?v=1`" in output


def test_a_link_is_where_the_flags_start_from() -> None:
    result = run("link", "--link", "https://example.org/?v=1&prompt=7&gpu=h200-sxm", "--prompt", "9")
    assert result.output.strip() == "?v=1&gpu=h200-sxm&prompt=9"


def test_bad_inputs_exit_2_and_name_every_field() -> None:
    result = run("compare", "--prompt", "-3", "--gpu", "h100-smx", "--set", "vllm.max_num_seq=4", "--set", "nonsense")
    assert result.exit_code == 2
    for name in (
        "--prompt (prompt): '-3'",
        "--gpu (gpu)",
        "did you mean h100-sxm?",
        "did you mean vllm.max_num_seqs?",
        "--set",
    ):
        assert name in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("--set", "vllm.max_num_seqs=5", "--set", "vllm.max_num_seqs=6"),
        ("--prompt", "5", "--set", "prompt=6"),
    ],
)
def test_an_input_given_twice_is_named(arguments: tuple[str, ...]) -> None:
    result = run("compare", *arguments)
    assert result.exit_code == 2
    assert "'6' is not allowed" in result.output
    assert "one value; the command gives it twice" in result.output


def test_a_knob_without_a_name_is_named() -> None:
    result = run("compare", "--set", "=1")
    assert result.exit_code == 2
    assert "--set: '=1' is not allowed" in result.output


def test_a_broken_link_hides_no_bad_flag() -> None:
    result = run("compare", "--link", "?v=1&promt=5", "--tp", "3")
    assert result.exit_code == 2
    assert "promt: '5' is not allowed" in result.output
    assert "--tp (tp): '3' is not allowed" in result.output


def test_a_broken_link_exits_2() -> None:
    result = run("compare", "--link", "?v=7&promt=2")
    assert result.exit_code == 2
    assert "v: '7'" in result.output


@pytest.mark.parametrize("engine", list(ENGINES))
def test_explain_shows_every_step_with_its_source(engine: str) -> None:
    output = run("explain", engine).output
    for step in compare(Scenario()).engines[engine].steps:
        assert step.id in output
        assert step.expression in output


def test_explain_names_the_engines_on_a_typo() -> None:
    result = run("explain", "vlm")
    assert result.exit_code == 2
    assert "vllm" in result.output


def test_worked_agrees_figure_by_figure() -> None:
    result = run("worked")
    assert result.exit_code == 0
    assert "DIFFERS" not in result.output
    checks = json.loads(run("worked", "--json").output)
    assert len(checks) > 130
    assert all(check["equal"] for check in checks)


@pytest.mark.parametrize("command", ["gpus", "models", "engines"])
def test_listings_are_readable_and_parseable(command: str) -> None:
    assert run(command).exit_code == 0
    assert json.loads(run(command, "--json").output)


def test_engines_lists_every_knob() -> None:
    output = run("engines").output
    for field in PLAN_INPUTS:
        if field.section in ENGINES:
            assert field.key in output


def test_every_flag_of_the_table_is_on_the_command_line() -> None:
    output = run("compare", "--help").output
    for field in PLAN_INPUTS:
        if field.flag is not None:
            assert field.flag in output


def test_hostile_text_stays_text() -> None:
    result = run("compare", "--gpu", "[bold red]<script>alert(1)</script>")
    assert result.exit_code == 2
    assert "[bold red]<script>" in result.output
