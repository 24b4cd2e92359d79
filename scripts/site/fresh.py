"""Whether the built site is that of the present sources; one build at a time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_INPUTS = (
    "data", "docs", "mkdocs.yml", "package-lock.json", "pyproject.toml", "requirements", "scripts/build_site.py",
    "scripts/site", "site_assets", "site_templates", "src/enginemem",
)  # fmt: skip
RECORD = "built.json"


@contextmanager
def alone(cache: Path) -> Iterator[None]:
    """Waits until no other process builds or copies the site, and keeps them waiting."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _files(root: Path) -> Iterator[Path]:
    for name in _INPUTS:
        path = root / name
        if path.is_file():
            yield path
        yield from sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def sources(root: Path) -> str:
    """A digest of everything that a build reads, and of the address that it builds for."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {os.environ.get('SITE_URL', '')}\0".encode())
    for path in _files(root):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _release(site: Path) -> str:
    """A digest of the release that stands in `site`: its service worker names every file by its content."""
    worker = site / "sw.js"
    return hashlib.sha256(worker.read_bytes()).hexdigest() if worker.is_file() else ""


def record(site: Path, cache: Path, built_from: str) -> None:
    """Remember what the site was built from."""
    (cache / RECORD).write_text(json.dumps({"sources": built_from, "release": _release(site)}), "utf-8")


def is_current(root: Path, site: Path, cache: Path) -> bool:
    """Whether `site` is what the present sources give."""
    known = cache / RECORD
    now = {"sources": sources(root), "release": _release(site)}
    return bool(now["release"]) and known.is_file() and json.loads(known.read_text("utf-8")) == now
