"""What the site weighs: bytes by asset, and the two budgets of a first visit. Over a budget the build fails."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import brotli
from scripts.site.assets import Release
from scripts.site.runtime import INTERPRETER, BuildError

USUAL_HOST = 5_000_000
"""Bytes of a first visit when the host compresses scripts and WebAssembly with gzip, and nothing else."""
BROTLI_HOST = 4_200_000
"""Bytes of a first visit when the host compresses everything with brotli."""
_GZIPPED = frozenset({".js", ".mjs", ".wasm"})
_COMPRESSED = frozenset({".bin", ".gz", ".png", ".whl", ".woff2", ".zip"})


class Weight(NamedTuple):
    """One file of the site, in bytes: as it is, with gzip, with brotli (the smaller of that and the file)."""

    path: str
    raw: int
    gzip: int
    brotli: int

    @property
    def usual(self) -> int:
        """Bytes on the line of a host that compresses scripts and WebAssembly only."""
        return self.gzip if Path(self.path).suffix in _GZIPPED else self.raw


def _squeezed(content: bytes, cache: Path) -> int:
    """The size with brotli at its best; remembered by content, since the interpreter alone takes half a minute."""
    known = cache / hashlib.sha256(content).hexdigest()
    if not known.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        known.write_text(str(len(brotli.compress(content, quality=11))), encoding="ascii")
    return int(known.read_text(encoding="ascii"))


def weight(site: Path, path: str, cache: Path) -> Weight:
    """The weight of one file."""
    content = (site / path).read_bytes()
    if Path(path).suffix in _COMPRESSED:
        return Weight(path, len(content), len(content), len(content))
    zipped = len(gzip.compress(content, 9, mtime=0))
    return Weight(path, len(content), zipped, min(len(content), _squeezed(content, cache)))


_LINKED = re.compile(r'<(?:script|link)\b[^>]*?\b(?:src|href)="([^"#?]+)"[^>]*>')
_NOT_FETCHED = re.compile(r'rel="(?:canonical|next|prev|alternate|edit)"')


def first_visit(site: Path, release: Release) -> list[str]:
    """The files that a first visit to the calculator fetches, relative to the site."""
    page = "index.html"
    html = (site / page).read_text(encoding="utf-8")
    linked = [match[1] for match in _LINKED.finditer(html) if not _NOT_FETCHED.search(match[0])]
    found = [path for path in (page, *linked, "sw.js") if (site / path).is_file()]
    found += [f"{release.app}/{name}" for name in ("worker.js", "worker-boot.js", "release.js", "core.bin")]
    found += [f"{release.runtime}/{name}" for name in (*INTERPRETER, "stdlib.bin")]
    return list(dict.fromkeys(found))


class Visit(NamedTuple):
    """The files of a first visit with their weights."""

    weights: tuple[Weight, ...]

    @property
    def usual(self) -> int:
        """Bytes with gzip for scripts and WebAssembly only."""
        return sum([item.usual for item in self.weights])

    @property
    def brotli(self) -> int:
        """Bytes with brotli for everything."""
        return sum([item.brotli for item in self.weights])

    def table(self) -> str:
        """A line a file, the heaviest first, and the sums."""
        rows = [(item.path, (item.raw, item.gzip, item.brotli, item.usual)) for item in self._by_weight()]
        sums = [sum(column) for column in zip(*[sizes for _, sizes in rows], strict=True)]
        lines = [f"{'raw':>12}{'gzip':>12}{'brotli':>12}{'usual host':>12}  file"]
        lines += ["".join([f"{value:>12,}" for value in sizes]) + f"  {path}" for path, sizes in rows]
        return "\n".join([*lines, "".join([f"{value:>12,}" for value in sums]) + "  first visit"])

    def _by_weight(self) -> Iterable[Weight]:
        return sorted(self.weights, key=lambda item: (-item.usual, item.path))


def weighed(site: Path, release: Release, cache: Path) -> Visit:
    """The first visit of a built site. `cache`: a folder that remembers sizes by content."""
    return Visit(tuple([weight(site, path, cache) for path in first_visit(site, release)]))


def enforce(visit: Visit) -> None:
    """Raises BuildError when a budget is exceeded."""
    for name, bytes_used, allowed in (
        ("a host that compresses scripts and WebAssembly only", visit.usual, USUAL_HOST),
        ("a host with brotli", visit.brotli, BROTLI_HOST),
    ):
        if bytes_used > allowed:
            raise BuildError(
                f"a first visit at {name} is {bytes_used:,} bytes; the budget is {allowed:,}\n{visit.table()}"
            )
