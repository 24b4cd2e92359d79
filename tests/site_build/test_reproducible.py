"""The same inputs give the same site, file by file, also when nothing is remembered from before."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from scripts import build_site


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_builds_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_URL", "https://example.org/enginemem/")
    build_site.build(tmp_path / "first")
    fresh = tmp_path / "cache"
    # The downloaded wheels are inputs; the compiled modules are not.
    shutil.copytree(build_site.CACHE / "wheels", fresh / "wheels")
    shutil.copytree(build_site.CACHE / "weights", fresh / "weights")
    monkeypatch.setattr(build_site, "CACHE", fresh)
    build_site.build(tmp_path / "second")
    assert digests(tmp_path / "first") == digests(tmp_path / "second")
