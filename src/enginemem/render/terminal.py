"""The command line's tables, drawn with rich."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from enginemem.render import figures
from enginemem.render.catalogue import cached_shape
from enginemem.render.ledger import Line, ledger
from enginemem.render.reproduce import inputs_line
from enginemem.render.rows import rows, titles
from enginemem.render.tables import log_lines, notes
from enginemem.scenario import PLAN_INPUTS
from enginemem.units import gb

if TYPE_CHECKING:
    from rich.console import Console

    from enginemem.architecture import Architecture
    from enginemem.comparison import Comparison
    from enginemem.hardware import Gpu
    from enginemem.release import EngineRelease
    from enginemem.scenario import Scenario
    from enginemem.worked import Check


def _table(title: str | None, *columns: str, left: int = 1) -> Table:
    """A table whose first `left` columns are text and whose others are figures."""
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", overflow="fold")
    return table


def _print(console: Console, *texts: str, style: str = "") -> None:
    for text in texts:
        # Text, not markup: what a user typed must stay text.
        console.print(Text(text, style=style), soft_wrap=True)


def describe(scenario: Scenario) -> str:
    """The scenario in one line."""
    replica = f"{scenario.tp} x {scenario.gpu.name}" if scenario.tp > 1 else scenario.gpu.name
    return (
        f"{scenario.model.name} on {replica}; prompt {scenario.prompt:,}, max_tokens {scenario.max_tokens:,}, "
        f"mean output {scenario.mean_output:,} ({scenario.shape})"
    )


def print_comparison(console: Console, comparison: Comparison) -> None:
    """The scenario, the finding, the table, notes, log lines and the link."""
    _print(console, describe(comparison.scenario), style="bold")
    _print(console, comparison.finding.text)
    table = _table(None, "", *titles(comparison))
    for row in rows(comparison):
        table.add_row(row.label, *row.cells)
    console.print(table)
    for note in notes(comparison):
        _print(console, note)
    for title, line in log_lines(comparison):
        _print(console, f"{title} should log:", f"  {line}")
    inputs = "".join(inputs_line(comparison.scenario))
    _print(console, "", f"GB is 10^9 bytes, GiB is 2^30. Inputs: {inputs}", style="dim")


def print_ledger(console: Console, comparison: Comparison, engine: str) -> None:
    """One engine's steps with their arithmetic and sources."""
    plan = comparison.engines[engine]
    title = dict(zip(comparison.engines, titles(comparison), strict=True))[engine]
    _print(console, f"{title}: {describe(comparison.scenario)}", style="bold")
    _print(console, f"{figures.STATUS[plan.status]}{': ' + plan.reason if plan.reason else ''}")
    if plan.log_line is not None:
        _print(console, "Log line to look for:", f"  {plan.log_line}")
    for line in ledger(plan.steps):
        _print_line(console, line)
    table = _table("Resolved configuration", "option", "value", "set by", left=1)
    for name, resolved in plan.resolved.items():
        value = resolved.value
        table.add_row(name, figures.figure(round_float(value), ""), resolved.set_by)
    console.print(table)


def round_float(value: object) -> int | str | bool | tuple[int, ...] | None:
    """A resolved value as text where it is a float: a configuration shows the decimal that was set."""
    if isinstance(value, float):
        return repr(value)
    if value is None or isinstance(value, (int, str, bool, tuple)):
        return value
    return str(value)


def _print_line(console: Console, line: Line) -> None:
    _print(console, "")
    heading = Text()
    heading.append(f"{line.sign:>2} ", style="dim")
    heading.append(line.label, style="bold")
    heading.append(f"  {line.value}")
    heading.append(f"  {line.id}", style="dim")
    console.print(heading, soft_wrap=True)
    _print(console, f"     {line.symbols}")
    if line.substituted != line.symbols:
        _print(console, f"     {line.substituted}")
    if line.note is not None:
        _print(console, f"     {line.note}", style="italic")
    for source in line.sources:
        _print(console, f"     {source}", style="dim")


def print_worked(console: Console, checks: Mapping[str, Sequence[Check]]) -> None:
    """Every published figure beside the computed one, and the verdict."""
    for case, lines in checks.items():
        table = _table(case, "engine", "figure", "published", "computed", "", left=2)
        for check in lines:
            table.add_row(
                check.engine or "all", check.figure, _plain(check.published), _plain(check.computed),
                "equal" if check.equal else "DIFFERS",
            )  # fmt: skip
        console.print(table)
    every = [check for lines in checks.values() for check in lines]
    equal = sum([check.equal for check in every])
    _print(console, f"{equal} of {len(every)} figures equal", style="bold")


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_gpus(console: Console, gpus: Iterable[Gpu]) -> None:
    """The hardware table."""
    table = _table(
        None, "id", "name", "CC", "CUDA total", "nvidia-smi total", "BF16 dense", "FP8 dense", "bandwidth", left=2
    )
    for gpu in gpus:
        capability = "-" if gpu.compute_capability is None else "{}.{}".format(*gpu.compute_capability)
        records = gpu.records
        table.add_row(
            gpu.id, gpu.name, capability,
            *[_text(records, key) for key in ("cuda_total", "nvidia_smi_total", "bf16_dense", "fp8_dense")],
            _text(records, "memory_bandwidth"),
        )  # fmt: skip
    console.print(table)
    _print(console, "A dash: no source was found, or sources disagree (see --json). Peaks are dense vendor figures.")


def _text(records: Mapping[str, Mapping[str, object] | None], key: str) -> str:
    record = records.get(key)
    text = None if record is None else record.get("text")
    return text if isinstance(text, str) else figures.DASH


def print_models(console: Console, models: Iterable[Architecture]) -> None:
    """The presets."""
    table = _table(
        None, "id", "hub id", "parameters", "stored weights", "layers", "heads", "KV heads", "head or row", "max length",
        left=2,
    )  # fmt: skip
    for model in models:
        kv_heads, width = cached_shape(model)
        table.add_row(
            model.id, model.hub_id, f"{model.parameters:,}", gb(model.inventory.stored_bytes), str(model.num_layers),
            str(model.heads), str(kv_heads), str(width), f"{model.max_position:,}",
        )  # fmt: skip
    console.print(table)


def print_engines(console: Console, releases: Iterable[EngineRelease]) -> None:
    """The pinned releases and the options that `--set` takes."""
    for release in releases:
        table = _table(f"{release.name} {release.release}", "option (--set)", "engine's own flag", "allowed", left=3)
        for field in PLAN_INPUTS:
            if field.section == release.engine:
                table.add_row(field.key, field.option or "", field.allowed)
        console.print(table)
