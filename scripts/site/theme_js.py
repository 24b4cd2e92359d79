"""Takes out of the theme's script what costs a page its first moment and what the style sheets do as well."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from scripts.site.runtime import BuildError

_SCHEME = re.compile(r'(let (\w+)=\w+\("meta",\{name:"color-scheme"\}\);)document\.head\.appendChild\(\2\);')
"""Putting this element in, and then its text, has every element of the page styled anew, twice. base.css says the same
of the page's scheme in a rule."""


def trim(site: Path) -> None:
    """Change the script of a built site, named after its new content in every page.

    Raises BuildError when the script is not as the theme's present release has it.
    """
    (script,) = (site / "assets/javascripts").glob("bundle.*.min.js")
    text, found = _SCHEME.subn(r"\1", script.read_text(encoding="utf-8"))
    if found != 1:
        raise BuildError(f"{script.name} puts in {found} color-scheme elements, not one")
    text = re.sub(r"\n//# sourceMappingURL=.*\n?$", "\n", text)
    script.with_name(f"{script.name}.map").unlink(missing_ok=True)
    new = f"bundle.{hashlib.sha256(text.encode()).hexdigest()[:8]}.min.js"
    script.with_name(new).write_text(text, encoding="utf-8")
    script.unlink()
    for page in sorted(site.rglob("*.html")):
        html = page.read_text(encoding="utf-8")
        page.write_text(
            html.replace(f"assets/javascripts/{script.name}", f"assets/javascripts/{new}"), encoding="utf-8"
        )
