"""Packs: many files as one, compressed as a whole, written into Python's file system by the worker in one go.

A pack is one line of JSON, `[[path, size], ...]`, then the files' bytes one after the other, all in one gzip stream.
It is served under a name that no host compresses again or decompresses on the way (`.bin`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import zopfli.gzip


def compressed(content: bytes) -> bytes:
    """A gzip stream, as small as it gets, without a time or a name in it."""
    stream: bytes = zopfli.gzip.compress(content, numiterations=5)
    return stream


def packed(files: Mapping[str, bytes]) -> bytes:
    """The pack of `files` (path in Python's file system: content), equal for equal files."""
    names = sorted(files)
    index = json.dumps([[name, len(files[name])] for name in names], separators=(",", ":"))
    return compressed(index.encode() + b"\n" + b"".join([files[name] for name in names]))


def files_under(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their path in it, with a leading slash."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in paths}
