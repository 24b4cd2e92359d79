"""The commands that start the engines as planned."""

from __future__ import annotations

from enginemem.comparison import Comparison
from enginemem.launch import launch
from enginemem.release import load_release
from enginemem.render.markup import escape, title


def launches(comparison: Comparison) -> str:
    """One command an engine, each with its own copy button."""
    return "".join([_launch(comparison, column) for column in comparison.engines])


def _launch(comparison: Comparison, column: str) -> str:
    release = load_release(column)
    found = launch(comparison.scenario, release)
    notes = "".join([f'<p class="em-small">{escape(note)}</p>' for note in found.notes])
    return (
        f'<div class="em-launch em-{column}"><h3>{title(column)}</h3>'
        f'<button type="button" class="em-button" data-copy="em-launch-{column}">Copy'
        f'<span class="em-hidden"> the {escape(release.name)} command</span></button>'
        f'<pre tabindex="0" aria-label="{escape(release.name)} command" id="em-launch-{column}">'
        f"{escape(found.command)}</pre>{notes}</div>"
    )
