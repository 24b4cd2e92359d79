"""Takes out of the theme's script what costs a page its first moment: what the style sheets do as well, and the search."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from scripts.site.runtime import BuildError

_SCHEME = re.compile(r'(let (\w+)=\w+\("meta",\{name:"color-scheme"\}\);)document\.head\.appendChild\(\2\);')
"""Putting this element in, and then its text, has every element of the page styled anew, twice. base.css says the same
of the page's scheme in a rule."""
_SEARCH = re.compile(r'\.\.\.(\w+)\("search"\)\.map\((\w+)=>(\w+\(\2,\{index\$:\w+,keyboard\$:\w+\}\))\)')
_SEARCH_LATER = r'...\1("search").flatMap(\2=>(whenSearched(()=>\3.subscribe()),[]))'
"""The theme's search starts a worker and loads its index with every page; whenSearched waits until it is wanted."""
_MOUNTS = re.compile(r";(\w+\(\{viewport\$:\w+,document\$:\w+\}\);.*window\.component\$=\w+;)\}\)\(\);\s*$", re.DOTALL)
_MOUNTS_LATER = r";setTimeout(()=>{\1})})();"
"""What is behind this place in the script puts its parts into the page: a task of its own, so that keys get between."""


def trim(site: Path, search_later: Path) -> None:
    """Change the script of a built site, named after its new content in every page.

    `search_later` is the script that defines whenSearched. Raises BuildError when the theme's script is not as its
    present release has it.
    """
    (script,) = (site / "assets/javascripts").glob("bundle.*.min.js")
    text = re.sub(r"\n//# sourceMappingURL=.*\n?$", "\n", script.read_text(encoding="utf-8"))
    for pattern, instead in ((_SCHEME, r"\1"), (_SEARCH, _SEARCH_LATER), (_MOUNTS, _MOUNTS_LATER)):
        text, found = pattern.subn(instead, text)
        if found != 1:
            raise BuildError(f"{script.name} has {found} places like {pattern.pattern}, not one")
    text = f"{search_later.read_text(encoding='utf-8').strip()}\n{text}"
    script.with_name(f"{script.name}.map").unlink(missing_ok=True)
    new = f"bundle.{hashlib.sha256(text.encode()).hexdigest()[:8]}.min.js"
    script.with_name(new).write_text(text, encoding="utf-8")
    script.unlink()
    for page in sorted(site.rglob("*.html")):
        html = page.read_text(encoding="utf-8")
        page.write_text(
            html.replace(f"assets/javascripts/{script.name}", f"assets/javascripts/{new}"), encoding="utf-8"
        )
