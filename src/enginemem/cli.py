"""The command line. Flags come from the input table, output from the renderers; nothing is computed here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

try:
    import click
    from rich.console import Console
except ImportError:  # pragma: no cover - only without the extra
    sys.exit("enginemem's command line needs click and rich, its extra 'cli': pip install '.[cli]' in a checkout")

from enginemem.architecture import Architecture, load_model, model_facts, model_ids
from enginemem.comparison import ENGINES, compare, plan_document
from enginemem.configuration import MOST_TEXT, read_texts
from enginemem.hardware import gpu_ids, load_gpu
from enginemem.inputs import FieldError, Input, InvalidInputs
from enginemem.link import decode
from enginemem.release import PINNED, load_release
from enginemem.render import terminal
from enginemem.render.tables import comma_separated, markdown
from enginemem.scenario import PLAN_INPUTS, Scenario
from enginemem.version import __version__
from enginemem.worked import check_case, worked_cases

Command = Callable[..., Any]


class Group(click.Group):
    """The command group: bad inputs are answered by name with exit status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; InvalidInputs becomes a list of errors on standard error and exit status 2."""
        try:
            return super().invoke(ctx)
        except InvalidInputs as invalid:
            for error in invalid.errors:
                click.echo(_error_line(error), err=True)
            ctx.exit(2)


def _error_line(error: FieldError) -> str:
    flag = PLAN_INPUTS[error.field].flag if error.field in PLAN_INPUTS else None
    name = error.field if flag is None else f"{flag} ({error.field})"
    hint = f"\n  did you mean {error.suggestion}?" if error.suggestion else ""
    return f"error: {name}: {error.given} is not allowed\n  allowed: {error.allowed}{hint}"


def _help(field: Input) -> str:
    assumed = " An assumption." if field.assumption else ""
    unit = " With its unit: GB, GiB or MiB." if field.kind == "quantity" else ""
    return f"{field.help}{assumed}{unit} [default: {field.default}]"


def _metavar(field: Input) -> str:
    """What a flag takes: its choices where they are few, else the kind of value."""
    if field.kind in ("gpu", "model"):
        return field.kind.upper()
    if field.kind == "quantity":
        return "SIZE"
    if field.choices is None:
        return field.kind.upper()
    return "[" + "|".join([*(["auto"] if field.auto else []), *field.choices()]) + "]"


def scenario_options(command: Command) -> Command:
    """A flag for each input of the plan, and `--set` for the engines' knobs."""
    link_option = click.option("--link", metavar="QUERY_OR_URL", help="Start from the inputs of a link.")
    set_option = click.option(
        "--set", "knobs", multiple=True, metavar="ENGINE.OPTION=VALUE",
        help="An engine's own option, e.g. --set vllm.gpu_memory_utilization=0.9. Repeatable; "
        "`enginemem engines` lists them.",
    )  # fmt: skip
    command = link_option(set_option(command))
    for flag, what in (
        ("--quant-config", "Its hf_quant_config.json, where the checkpoint has one."),
        ("--config", "A model of your own in place of a preset: the path of its config.json, or - for standard input."),
    ):
        command = click.option(flag, metavar="FILE", help=what)(command)
    for field in reversed(list(PLAN_INPUTS)):
        if field.flag is not None:
            option = click.option(field.flag, field.key, metavar=_metavar(field), default=None, help=_help(field))
            command = option(command)
    return command


def _file_text(flag: str, path: str) -> str:
    """The text of a file, or of standard input for `-`; raises InvalidInputs that names the flag."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            # One character too many is enough to be refused by length.
            text: str = file.read(MOST_TEXT + 1)
            return text
    except UnicodeDecodeError:
        problem = "a file of UTF-8 text"
    except OSError as error:
        problem = f"a file that can be read ({error.strerror or type(error).__name__})"
    raise InvalidInputs([FieldError(flag, repr(path), problem)])


def own_model(config: str | None, quant_config: str | None, model: str | None) -> Architecture | None:
    """The model of `--config`, or None without that flag.

    Raises InvalidInputs that names every bad field of the files, or what does not go with the flags.
    """
    errors = []
    if quant_config is not None and config is None:
        errors.append(FieldError("--quant-config", repr(quant_config), "beside --config only"))
    if config == quant_config == "-":
        errors.append(FieldError("--quant-config", "'-'", "a file: standard input is read for --config"))
    if config is not None and model is not None:
        errors.append(FieldError("--config", repr(config), "one model: the command names a preset as well"))
    if errors:
        raise InvalidInputs(errors)
    if config is None:
        return None
    extra = None if quant_config is None else _file_text("--quant-config", quant_config)
    return read_texts(_file_text("--config", config), extra)


def _changes(knobs: tuple[str, ...], flags: Mapping[str, str | None], errors: list[FieldError]) -> dict[str, object]:
    """What flags and `--set` say; what is wrong with them goes into `errors`."""
    changes: dict[str, object] = {key: value for key, value in flags.items() if value is not None}
    for knob in knobs:
        name, equals, value = knob.partition("=")
        key = name.strip()
        if not equals or not key:
            errors.append(FieldError("--set", repr(knob), "ENGINE.OPTION=VALUE"))
        elif key in changes:
            errors.append(FieldError(key, repr(value), "one value; the command gives it twice"))
        else:
            changes[key] = value
    return changes


def scenario_from(link: str | None, knobs: tuple[str, ...], flags: Mapping[str, str | None]) -> Scenario:
    """The scenario of a command: the link's inputs and model, then the flags, files and knobs over them.

    Raises InvalidInputs that names every bad field.
    """
    flags = dict(flags)
    files = flags.pop("config", None), flags.pop("quant_config", None)
    given: dict[str, object] = {}
    errors: list[FieldError] = []
    changes = _changes(knobs, flags, errors)
    model: Architecture | None = None
    unreadable = False
    try:
        model = own_model(*files, model=str(changes["model"]) if "model" in changes else None)
    except InvalidInputs as invalid:
        errors += invalid.errors
        unreadable = True
    if link is not None:
        try:
            opened = decode(link, model=model)
            given.update(opened.non_defaults())
            if opened.has_own_model and "model" not in changes:
                model = opened.model
        except InvalidInputs as invalid:
            errors += invalid.errors
    if model is not None:
        given.pop("model", None)
    inputs = {**given, **changes}
    try:
        if unreadable:
            # Nothing is said about a model that is not the one that was meant.
            PLAN_INPUTS.validate(inputs)
            raise InvalidInputs([])
        scenario = Scenario(**inputs) if model is None else Scenario.of_model(model, **inputs)
    except InvalidInputs as invalid:
        raise InvalidInputs([*errors, *invalid.errors]) from None
    if errors:
        raise InvalidInputs(errors)
    return scenario


def _print_json(document: object) -> None:
    click.echo(json.dumps(document, indent=1, ensure_ascii=False))


def _console() -> Console:
    # A pipe has no width of its own: 80 columns would fold figures, so it gets room.
    return Console(width=None if sys.stdout.isatty() else 200, highlight=False)


def _print_notes(scenario: Scenario) -> None:
    """What was left out of a configuration of the user's own, or taken for granted."""
    if scenario.has_own_model:
        for note in scenario.model.notes:
            click.echo(f"{scenario.model.name}: {note}.")


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="enginemem")
def main() -> None:
    """What vLLM, SGLang and TensorRT-LLM each do with a GPU's memory, before anybody starts them.

    Figures come with their arithmetic and its source in the engine's code: try `enginemem explain vllm`.
    """


@main.command("compare")
@scenario_options
@click.option("--json", "form", flag_value="json", help="JSON: bytes, tokens and counts as integers.")
@click.option("--markdown", "form", flag_value="markdown", help="Markdown.")
@click.option("--csv", "form", flag_value="csv", help="CSV with raw values.")
def compare_command(form: str | None, link: str | None, knobs: tuple[str, ...], **flags: str | None) -> None:
    """Compare the engines for one GPU, model and traffic."""
    comparison = compare(scenario_from(link, knobs, flags))
    if form == "json":
        click.echo(comparison.to_json(indent=1))
    elif form == "markdown":
        click.echo(markdown(comparison), nl=False)
    elif form == "csv":
        click.echo(comma_separated(comparison), nl=False)
    else:
        terminal.print_comparison(_console(), comparison)
        _print_notes(comparison.scenario)


@main.command("explain")
@click.argument("engine", type=click.Choice(list(ENGINES)))
@scenario_options
@click.option("--json", "as_json", is_flag=True, help="JSON.")
def explain_command(engine: str, as_json: bool, link: str | None, knobs: tuple[str, ...], **flags: str | None) -> None:
    """Print one engine's ledger: every step with its numbers and its source."""
    comparison = compare(scenario_from(link, knobs, flags))
    if as_json:
        _print_json(plan_document(comparison.engines[engine]))
    else:
        terminal.print_ledger(_console(), comparison, engine)
        _print_notes(comparison.scenario)


@main.command("worked")
@click.option("--json", "as_json", is_flag=True, help="JSON.")
def worked_command(as_json: bool) -> None:
    """Recompute the published comparisons, figure by figure. Exit status 1 on any difference."""
    checks = {case.id: check_case(case) for case in worked_cases()}
    if as_json:
        _print_json([{**check._asdict(), "equal": check.equal} for case in checks.values() for check in case])
    else:
        terminal.print_worked(_console(), checks)
    if not all(check.equal for case in checks.values() for check in case):
        sys.exit(1)


@main.command("link")
@scenario_options
@click.option("--json", "as_json", is_flag=True, help="JSON.")
def link_command(as_json: bool, link: str | None, knobs: tuple[str, ...], **flags: str | None) -> None:
    """Print the link that carries the given inputs; with --link, check a link and print it in canonical form."""
    scenario = scenario_from(link, knobs, flags)
    if as_json:
        _print_json({"link": scenario.link(), "inputs": scenario.non_defaults()})
    else:
        click.echo(scenario.link())


@main.command("gpus")
@click.option("--json", "as_json", is_flag=True, help="JSON with every source.")
def gpus_command(as_json: bool) -> None:
    """List the GPUs: both memory totals, dense peaks and bandwidth."""
    gpus = [load_gpu(gpu_id) for gpu_id in gpu_ids()]
    if as_json:
        _print_json({gpu.id: gpu.records for gpu in gpus})
    else:
        terminal.print_gpus(_console(), gpus)


@main.command("models")
@click.option("--json", "as_json", is_flag=True, help="JSON with every source.")
def models_command(as_json: bool) -> None:
    """List the model presets."""
    if as_json:
        _print_json({model_id: model_facts(model_id) for model_id in model_ids()})
    else:
        terminal.print_models(_console(), [load_model(model_id) for model_id in model_ids()])


@main.command("engines")
@click.option("--json", "as_json", is_flag=True, help="JSON with every constant and source.")
def engines_command(as_json: bool) -> None:
    """List the pinned releases and the options that --set takes."""
    releases = [load_release(column, PINNED[column]) for column in ENGINES]
    if as_json:
        _print_json({release.engine: release.records for release in releases})
    else:
        terminal.print_engines(_console(), releases)


if __name__ == "__main__":
    main(prog_name="enginemem")
