"""The site as a visitor meets it: a server that can lose files, be replaced and go away; a browser that is watched."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError
from scripts.ensure_browser import NAMES
from scripts.site.serve import Line, SiteServer

PAGES = ("", "worked/", "logs/", "method/", "hardware/", "models/", "library/", "404.html")
"""Every page of the site."""
NEEDS = (
    "The browser tests need Chromium. Install the distribution's (`apt-get install chromium`) "
    "or Playwright's (`.venv/bin/playwright install chromium`)."
)


def chromium(own: str) -> str | None:
    """The browser to use: `CHROMIUM` when it is set, Playwright's own at `own` when it is there, else the machine's."""
    given = os.environ.get("CHROMIUM")
    if given or Path(own).is_file():
        return given or own
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Host(SiteServer):
    """Serves a copy of the site; tests take files away, replace the release, or end the connection."""

    def __init__(self, folder: Path, *, prefix: str = "/", line: Line | None = None, max_age: int = 600) -> None:
        self.asked: list[str] = []
        self.missing: set[str] = set()
        self.away = False
        super().__init__(folder, prefix=prefix, line=line, max_age=max_age)

    def file_of(self, target: str) -> Path | None:
        self.asked.append(target)
        if self.away:
            raise ConnectionAbortedError
        if any(name in target for name in self.missing):
            return None
        return super().file_of(target)

    def handle_error(self, request: object, client_address: object) -> None:
        """Quiet: an ended connection is what a test asked for, and a browser may close one at any time."""

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.server_address[1]}"


class Watch:
    """What a context's pages said on the console and asked of any origin."""

    def __init__(self, context: BrowserContext) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.allowed: list[str] = []
        self.refused: set[str] = set()
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _error(self, error: WebError) -> None:
        self.errors.append(f"uncaught: {error.error}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)

    def allow(self, *patterns: str) -> None:
        """Expect console errors that match; a test that breaks something says which it expects."""
        self.allowed += patterns

    def foreign(self, origins: Collection[str]) -> list[str]:
        """Requests to any other origin, those left out that a test sends to see them `refused`.

        `blob:` and `data:` stay in the page.
        """
        known = {*origins, *self.refused}
        asked = [(url, urlsplit(url)) for url in self.requests]
        return [
            url for url, at in asked if at.scheme not in ("blob", "data") and f"{at.scheme}://{at.netloc}" not in known
        ]

    def unexpected(self) -> list[str]:
        """Console errors that no test expected."""
        return [text for text in self.errors if not any(re.search(pattern, text) for pattern in self.allowed)]
