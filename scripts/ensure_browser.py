"""Makes sure that the browser tests have a Chromium: one that is here, Playwright's own, or the distribution's.

Prints the path of the executable. Exit status 1, with what to install, when none can be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The shell first: it has no window to draw, and the tests take two thirds of the time in it."""
_INSTALL = ("apt-get", "install", "-q", "-y", "--no-install-recommends")
PACKAGES = (("chromium", "chromium-headless-shell"), ("chromium",))
"""What to ask the distribution for; older ones have no shell."""


def installed() -> str | None:
    """The path of a Chromium on this machine: `CHROMIUM` if set, one on the path, or Playwright's own."""
    given = os.environ.get("CHROMIUM")
    if given:
        return given if Path(given).exists() else None
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    return _playwrights_own()


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - slow, and seldom needed

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False, stdout=sys.stderr).returncode == 0
    except OSError:
        return False


def install() -> str | None:
    """Install a Chromium: Playwright's own where it can be had, else the distribution's package."""
    if _run(sys.executable, "-m", "playwright", "install", "chromium"):
        found = installed()
        if found:
            return found
    root = () if os.geteuid() == 0 else ("sudo", "-n")
    if shutil.which("apt-get") and _run(*root, "apt-get", "update", "-q"):
        for packages in PACKAGES:
            if _run(*root, *_INSTALL, *packages):
                return installed()
    return None


def main() -> int:
    """Exit status 0 with the executable's path printed, or 1 with what to do."""
    found = installed() or install()
    if found is None:
        print("The browser tests need Chromium: install it, or set CHROMIUM=/path/to/chromium.", file=sys.stderr)
        return 1
    print(f"browser: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
