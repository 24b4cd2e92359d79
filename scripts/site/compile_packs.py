"""Runs inside Pyodide (Python 3.14): compiles what the site ships, so that no visitor's browser compiles Python.

Modules become `.pyc` without timestamps (unchecked hash), docstrings and line tables, which are a fifth of their size;
equal sources give equal bytes.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import marshal
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from traced import STDLIB_ZIP

SITE_PACKAGES = "/lib/python3.14/site-packages"
# What writes a `.pyc` is not public; this runs in the pinned Python alone.
_EXTERNAL: Any = importlib.import_module("_frozen_importlib_external")
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)


def compiled(source: bytes, origin: str) -> bytes:
    """The bytes of a `.pyc` that Python never checks against its source."""
    code = without_lines(compile(source, origin, "exec", dont_inherit=True, optimize=2))
    # Once through marshal: references then depend on the code alone, not on what else this process holds.
    code = marshal.loads(marshal.dumps(code))
    pyc: bytearray = _EXTERNAL._code_to_hash_pyc(code, importlib.util.source_hash(source), False)
    return bytes(pyc)


def without_lines(code: CodeType) -> CodeType:
    """The code, and all code inside it, without the tables that map instructions to lines."""
    constants = tuple([without_lines(item) if isinstance(item, CodeType) else item for item in code.co_consts])
    # Entries that say "no location" for up to eight code units each; tracebacks walk them, so there must be enough.
    whole, rest = divmod(len(code.co_code) // 2, 8)
    table = b"\xff" * whole + (bytes([0xF8 | (rest - 1)]) if rest else b"")
    return code.replace(co_consts=constants, co_linetable=table)


def compiled_file(path: str) -> bytes:
    """A module of our own, compiled under its file name."""
    return compiled(Path(path).read_bytes(), Path(path).name)


def stdlib_sources(names: Iterable[str]) -> dict[str, bytes]:
    """Sources from Pyodide's own zip, by file name."""
    with zipfile.ZipFile(STDLIB_ZIP) as whole:
        return {name: whole.read(name) for name in sorted(names)}


def boot_zip(names: Iterable[str]) -> bytes:
    """The standard library that the interpreter itself needs, as a stored zip: it is compressed as a whole later."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, source in stdlib_sources(names).items():
            archive.writestr(zipfile.ZipInfo(f"{name}c", _FIXED_TIME), compiled(source, f"{STDLIB_ZIP}/{name}"))
    return buffer.getvalue()


def stdlib_files(names: Iterable[str]) -> dict[str, bytes]:
    """Standard library modules as files beside the site's packages."""
    return {
        f"{SITE_PACKAGES}/{name}c": compiled(source, f"{SITE_PACKAGES}/{name}")
        for name, source in stdlib_sources(names).items()
    }


def package_files(folder: str, left_out: Iterable[str]) -> dict[str, bytes]:
    """The files of an unpacked wheel: modules compiled, everything else as it is, without the wheel's own records."""
    files: dict[str, bytes] = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name in set(left_out) or ".dist-info/" in name or "__pycache__" in name:
            continue
        if path.suffix == ".py":
            files[f"{SITE_PACKAGES}/{name}c"] = compiled(path.read_bytes(), f"{SITE_PACKAGES}/{name}")
        elif path.name != "py.typed":
            files[f"{SITE_PACKAGES}/{name}"] = path.read_bytes()
    return files


def omitted(shipped: Iterable[str]) -> list[str]:
    """The modules of the whole standard library that the site does not ship, by dotted name."""
    with zipfile.ZipFile(STDLIB_ZIP) as whole:
        files = {name for name in whole.namelist() if name.endswith(".py") and not name.startswith("site-packages/")}
    left = files - set(shipped)
    return sorted(name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in left)


def write_all(folder: str, files: Mapping[str, bytes]) -> None:
    """Write files under a folder of the host."""
    for name, content in files.items():
        target = Path(folder) / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
