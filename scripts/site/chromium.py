"""A Chromium for measuring: an empty profile each time, and flags that keep it from talking to anybody."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import BrowserContext, Playwright
from scripts.site.runtime import BuildError

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def executable() -> str:
    """The path of the machine's Chromium: `CHROMIUM`, or one on the path."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise BuildError("no Chromium: install the distribution's chromium, or set CHROMIUM to its path")
    return found


@contextmanager
def profile(playwright: Playwright, script: str = "") -> Iterator[BrowserContext]:
    """A browser with an empty profile; `script` runs in every page before the page's own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        context = playwright.chromium.launch_persistent_context(folder, executable_path=executable(), args=list(FLAGS))
        if script:
            context.add_init_script(script)
        try:
            yield context
        finally:
            context.close()
