"""Writes the service worker: the list of what a release consists of, so that it works offline and never mixes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from scripts.site.assets import Release
from scripts.site.runtime import INTERPRETER

_ON_DEMAND = ("stdlib-whole.zip", "record.bin", "wheels")
_SKIPPED = frozenset({".gz", ".map", ".txt"})


def precached(site: Path, release: Release) -> dict[str, str]:
    """Every file that offline use needs, by its address relative to the site, with its sha256.

    Left out: what is loaded on demand only, Material's languages for search, maps, and what browsers do not ask for.
    """
    found: dict[str, str] = {}
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        in_runtime = name.removeprefix(f"{release.runtime}/") if name.startswith(f"{release.runtime}/") else None
        if path.is_dir() or path.suffix in _SKIPPED or name in ("sw.js", "sitemap.xml"):
            continue
        if "/lunr/" in name or (in_runtime and in_runtime.split("/")[0] in _ON_DEMAND):
            continue
        address = name.removesuffix("index.html") if path.name == "index.html" else name
        found[address] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert all(f"{release.runtime}/{name}" in found for name in INTERPRETER)
    return found


def release_id(files: dict[str, str]) -> str:
    """Sixteen hex digits that stand for a whole release."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def write(site: Path, template: Path, release: Release) -> str:
    """Write `sw.js` into the site from its template; returns the release's id."""
    files = precached(site, release)
    identity = release_id(files)
    text = template.read_text(encoding="utf-8")
    filled = text.replace('"__RELEASE__"', json.dumps(identity)).replace('"__FILES__"', json.dumps(files, indent=0))
    (site / "sw.js").write_text(filled, encoding="utf-8")
    return identity
