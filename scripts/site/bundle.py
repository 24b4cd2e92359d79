"""The project's own wheel: what the browser runs is what an installation would run."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from scripts.site.runtime import BuildError


def build_wheel(root: Path, folder: Path) -> Path:
    """Build the project's wheel into `folder` (without a network) and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if built.returncode:
        raise BuildError(f"building the wheel failed:\n{built.stderr.strip()}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpacked_wheel(root: Path, folder: Path) -> Path:
    """The project's wheel, built and unpacked into `folder`/files."""
    target = folder / "files"
    with zipfile.ZipFile(build_wheel(root, folder)) as archive:
        archive.extractall(target)
    return target
