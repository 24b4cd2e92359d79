"""Small pieces of markup that every HTML fragment is made of. Text is escaped here; nothing else writes tags from text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from enginemem.release import load_release

_FIGURE = re.compile(r"([-−]?\d[\d.,]*) (\D+|\(.*)$")
_SPECIAL = re.compile("[&<>\"']")
_TABLE = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})

_SHAPES: Mapping[str, str] = {
    "vllm": '<circle cx="6" cy="6" r="5"/>',
    "sglang": '<path d="M6 .6 11.7 11H.3z"/>',
    "tensorrt-llm": '<path d="M1.2 1.2h9.6v9.6H1.2z"/>',
}
"""One shape an engine, so that colour never stands alone."""


def escape(text: str) -> str:
    """`text` as it reads in HTML content and in a quoted attribute."""
    return text.translate(_TABLE) if _SPECIAL.search(text) else text


def mark(engine: str) -> str:
    """The engine's shape in its hue; decoration beside its name."""
    return f'<svg class="em-mark" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">{_SHAPES[engine]}</svg>'


@cache
def name(engine: str) -> str:
    """The engine's name, marked with its shape."""
    return f'<span class="em-name em-{engine}">{mark(engine)}{escape(load_release(engine).name)}</span>'


@cache
def title(engine: str) -> str:
    """Shape, name and release."""
    return f'{name(engine)} <span class="em-quiet em-release">{escape(load_release(engine).release)}</span>'


@lru_cache(maxsize=4096)
def quiet_unit(text: str) -> str:
    """A formatted figure with its unit, or what stands in brackets behind it, in the quieter tone: `59.16 GB`."""
    match = _FIGURE.match(text)
    return f'{match[1]}<span class="em-u"> {escape(match[2])}</span>' if match else escape(text)


def figure(key: str, text: str) -> str:
    """A figure that may change under the reader. `key`, made of column ids and constants, tells the page which one."""
    return f'<span class="em-fig" data-fig="{key}">{quiet_unit(text)}</span>'


def disclosure(summary: str, content: str, *, key: str, css: str = "em-fold") -> str:
    """Content behind a summary; `key` keeps it open when the region is redrawn."""
    return f'<details class="{css}" id="{escape(key)}"><summary>{summary}</summary>{content}</details>'


def scroll_box(label: str) -> str:
    """The opening tag of a box that scrolls sideways, by keyboard too; the caller closes it."""
    return f'<div class="em-scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
