"""The built site for the tests: built when it is missing or older than its sources, by one process at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from scripts.site import fresh

ROOT = Path(__file__).resolve().parents[2]


def copy_of_the_site(target: Path) -> Path:
    """A copy of the current site, so that a build beside the tests does not change what they see.

    Raises RuntimeError with the build's own words when the site cannot be built.
    """
    command = [sys.executable, str(ROOT / "scripts/build_site.py"), "--if-stale"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the site does not build:\n{(done.stdout + done.stderr).strip()}")
    with fresh.alone(ROOT / ".cache/site"):
        return Path(shutil.copytree(ROOT / "site", target))
