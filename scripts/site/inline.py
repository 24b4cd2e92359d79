"""Puts what a first paint waits for into the page itself: small style sheets, and scripts that the head waits for.

The page's policy allows each by its hash. The theme's large style sheet stays a file of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from scripts.site.runtime import BuildError

SMALL = 24_000
_SHEET = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
_HEAD_SCRIPT = re.compile(r'<script src="([^"]+)"></script>')


def _file(site: Path, page: Path, address: str) -> Path:
    """The file behind an address in a page; the 404 page names its files from the site's root."""
    base = site if address.startswith("/") else page.parent
    return base / address.lstrip("/")


def _fits(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= SMALL


def with_inline(html: str, site: Path, page: Path) -> str:
    """The page with its small style sheets in line, in their places, and its head's small scripts."""

    def sheet(match: re.Match[str]) -> str:
        path = _file(site, page, match[1])
        if not _fits(path):
            return match[0]
        text = path.read_text(encoding="utf-8").strip()
        if "url(" in text or "@import" in text or "</style" in text:
            raise BuildError(f"{path.name} cannot stand in line: it names other files or ends its element")
        return f"<style>{text}</style>"

    def script(match: re.Match[str]) -> str:
        path = _file(site, page, match[1])
        if not _fits(path):
            return match[0]
        text = path.read_text(encoding="utf-8").strip()
        if "</script" in text or "<!--" in text:
            raise BuildError(f"{path.name} cannot stand in line: it ends its element")
        return f"<script>{text}</script>"

    head, end, body = html.partition("</head>")
    return _HEAD_SCRIPT.sub(script, _SHEET.sub(sheet, head)) + end + body
