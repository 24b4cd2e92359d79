"""The comparison as Markdown and CSV."""

from __future__ import annotations

import csv
import io

from enginemem.comparison import Comparison
from enginemem.render.reproduce import inputs_line
from enginemem.render.rows import rows, titles


def escape(text: str) -> str:
    """Text that a Markdown table cell shows as it is."""
    for mark in "\\`*_{}[]<>#|":
        text = text.replace(mark, "\\" + mark)
    return text.replace("\n", " ")


def sentence(text: str) -> str:
    """A reason or note as a sentence: a capital first, one full stop last."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def notes(comparison: Comparison) -> list[str]:
    """A sentence for each engine: why there is no plan, or what its graphs and its log say."""
    lines = []
    for title, plan in zip(titles(comparison), comparison.engines.values(), strict=True):
        lines += [f"{title}: {sentence(text)}" for text in (plan.reason, plan.graph_note) if text is not None]
    return lines


def log_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """The start-up log line to look for, by column title."""
    return [
        (title, plan.log_line)
        for title, plan in zip(titles(comparison), comparison.engines.values(), strict=True)
        if plan.log_line is not None
    ]


def markdown(comparison: Comparison) -> str:
    """The comparison as a Markdown document: finding, table, notes, log lines, link."""
    lines = [escape(comparison.finding.text), ""]
    lines.append("| | " + " | ".join(escape(title) for title in titles(comparison)) + " |")
    lines.append("|---" * (len(comparison.engines) + 1) + "|")
    lines += ["| " + " | ".join(escape(cell) for cell in (row.label, *row.cells)) + " |" for row in rows(comparison)]
    lines += ["", *[f"- {escape(note)}" for note in notes(comparison)]]
    lines += ["", *[f"- {escape(title)} should log: `{line}`" for title, line in log_lines(comparison)]]
    query, beside = inputs_line(comparison.scenario)
    lines += ["", f"Inputs: `{query}`{escape(beside)}", ""]
    return "\n".join(lines)


def comma_separated(comparison: Comparison) -> str:
    """The comparison as CSV: one line a row, raw values (bytes, tokens, counts, seconds), empty where unknown."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", *titles(comparison)])
    for row in rows(comparison):
        writer.writerow([row.label, *["" if value is None else value for value in row.values]])
    return buffer.getvalue()
