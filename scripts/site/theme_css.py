"""Takes the rules that no page and no script of this site uses out of the theme's style sheets, with PurgeCSS."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

from scripts.site.runtime import BuildError

_SWITCHING = re.compile(r"\[data-md-color-switching\] \*[^{}]*\{transition-duration:0s!important\}")
"""The theme sets and takes away this attribute when a page opens: with the rule, each has every element styled anew."""
_NAMED = re.compile(r"^(\w+)\.[0-9a-f]{8}\.min\.css$")


def trim(root: Path, site: Path) -> None:
    """Trim the sheets of a built site, before they go into its pages; each is named after its new content.

    Raises BuildError when PurgeCSS fails or a sheet is not named as the theme names them.
    """
    sheets = sorted((site / "assets/stylesheets").glob("*.css"))
    content = ["**/*.html", "assets/javascripts/**/*.js", "assets/site/*.js"]
    command = [str(root / "node_modules/.bin/purgecss"), "--keyframes", "--css", *[str(sheet) for sheet in sheets]]
    command += [
        "--content",
        *[str(site / pattern) for pattern in content],
        "--output",
        str(site / "assets/stylesheets"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"PurgeCSS failed:\n{done.stderr.strip()}")
    _without_switching(sheets)
    names = {sheet.name: _renamed(sheet) for sheet in sheets}
    for page in sorted(site.rglob("*.html")):
        html = page.read_text(encoding="utf-8")
        for old, new in names.items():
            html = html.replace(f"assets/stylesheets/{old}", f"assets/stylesheets/{new}")
        page.write_text(html, encoding="utf-8")


def _without_switching(sheets: list[Path]) -> None:
    found = 0
    for sheet in sheets:
        text, count = _SWITCHING.subn("", sheet.read_text(encoding="utf-8"))
        sheet.write_text(text, encoding="utf-8")
        found += count
    if found != 1:
        raise BuildError(f"the theme has {found} rules for data-md-color-switching, not one")


def _renamed(sheet: Path) -> str:
    """The sheet's new name; the map of what it was goes."""
    match = _NAMED.match(sheet.name)
    if match is None:
        raise BuildError(f"{sheet.name} is not named as the theme names its style sheets")
    sheet.with_name(f"{sheet.name}.map").unlink(missing_ok=True)
    name = f"{match[1]}.{hashlib.sha256(sheet.read_bytes()).hexdigest()[:8]}.min.css"
    sheet.rename(sheet.with_name(name))
    return name
