"""The built site for the tests: built when it is missing or older than its inputs, by one process at a time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"
_CACHE = ROOT / ".cache/site"
_RECORD = _CACHE / "tested.json"
_INPUTS = (
    "data", "docs", "mkdocs.yml", "package-lock.json", "pyproject.toml", "requirements", "scripts/build_site.py",
    "scripts/site", "site_assets", "site_templates", "src/enginemem",
)  # fmt: skip


def _files() -> Iterator[Path]:
    for name in _INPUTS:
        path = ROOT / name
        if path.is_file():
            yield path
        yield from sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def _digest(paths: Iterator[Path] | list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _state() -> dict[str, str]:
    """What the inputs are, and which release stands in `site/`: its service worker names every file by hash."""
    worker = SITE / "sw.js"
    return {"inputs": _digest(_files()), "site": _digest([worker]) if worker.is_file() else ""}


def _build() -> None:
    command = [sys.executable, str(ROOT / "scripts/build_site.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the site does not build:\n{(done.stdout + done.stderr).strip()}")


def copy_of_the_site(target: Path) -> Path:
    """A copy of the current site, so that a build beside the tests does not change what they see.

    Raises RuntimeError with the build's own words when the site cannot be built.
    """
    import os

    if os.environ.get("DEV_SITE"):
        return Path(shutil.copytree(os.environ["DEV_SITE"], target))
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "tested.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        recorded = json.loads(_RECORD.read_text("utf-8")) if _RECORD.is_file() else {}
        if recorded != _state():
            inputs = _state()["inputs"]
            _build()
            _RECORD.write_text(json.dumps({**_state(), "inputs": inputs}), "utf-8")
        shutil.copytree(SITE, target)
    return target
