"""The Content-Security-Policy of every page, as a `<meta>`: hashes of the theme's inline scripts, nothing unsafe."""

from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser
from pathlib import Path

from scripts.site.runtime import BuildError

_DATA_BLOCKS = frozenset({"application/json", "application/ld+json"})
_HEAD = '<meta charset="utf-8">'


class _Inline(HTMLParser):
    """Collects what a policy must allow in line: scripts, style sheets, style attributes; and event handlers."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.refused: list[str] = []
        self._into: list[str] | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self._into = None
        for name, value in attributes:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.refused.append(f"<{tag} {name}={value!r}>")
            if name == "style":
                self.refused.append(f"<{tag} style={value!r}>")
        if tag == "script" and "src" not in given and given.get("type") not in _DATA_BLOCKS:
            self._into = self.scripts
        elif tag == "style":
            self._into = self.styles

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._into = None


def _hashes(texts: list[str]) -> str:
    digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts}
    return "".join([f" 'sha256-{digest}'" for digest in sorted(digests)])


def policy(html: str) -> str:
    """The policy for one page. Raises BuildError for what it would have to be unsafe for: handlers, style attributes."""
    inline = _Inline()
    inline.feed(html)
    inline.close()
    if inline.refused:
        raise BuildError("the page's policy forbids " + ", ".join(dict.fromkeys(inline.refused)))
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src 'self' 'wasm-unsafe-eval'{_hashes(inline.scripts)}",
            f"style-src 'self'{_hashes(inline.styles)}",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "worker-src 'self' blob:",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
        ]
    )


def with_policy(html: str) -> str:
    """The page with its policy, before anything that the policy governs."""
    if html.count(_HEAD) != 1:
        raise BuildError(f"a page without exactly one {_HEAD}")
    metas = [f'<meta http-equiv="Content-Security-Policy" content="{policy(html)}">']
    if 'name="referrer"' not in html:
        metas.append('<meta name="referrer" content="no-referrer">')
    return html.replace(_HEAD, _HEAD + "".join(metas))


def protect(site: Path) -> None:
    """Write the policy into every page of a built site."""
    for page in sorted(site.rglob("*.html")):
        try:
            page.write_text(with_policy(page.read_text(encoding="utf-8")), encoding="utf-8")
        except BuildError as error:
            raise BuildError(f"{page.relative_to(site)}: {error}") from error
