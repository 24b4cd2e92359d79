"""The Python runtime of the site, made from Pyodide's npm package: the interpreter, and a small standard library."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PYODIDE = Path("node_modules/pyodide")
HASHES = Path("requirements/pyodide.sha256")
OVERLAYS = Path("site_assets/py/overlays")
INTERPRETER = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
STDLIB = "python_stdlib.zip"
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """What stops the build, in words for who runs it."""


def verified(folder: Path, hashes: Path) -> dict[str, bytes]:
    """The files that `hashes` names (lines as sha256sum writes them), from `folder`.

    Raises BuildError when one is missing or is not the pinned one.
    """
    files: dict[str, bytes] = {}
    for line in hashes.read_text(encoding="utf-8").splitlines():
        digest, name = line.split()
        path = folder / name
        if not path.is_file():
            raise BuildError(f"{path} is missing: run `npm ci` first")
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise BuildError(f"{path} is not the file that {hashes} pins")
        files[name] = content
    return files


def with_overlays(stdlib: bytes, overlays: Path) -> bytes:
    """The standard library with our few modules in place of its own, which stay beside them as `..._whole`."""
    buffer = io.BytesIO()
    ours = {path.relative_to(overlays).as_posix(): path.read_bytes() for path in sorted(overlays.rglob("*.py"))}
    with zipfile.ZipFile(io.BytesIO(stdlib)) as whole, zipfile.ZipFile(buffer, "w") as archive:
        if missing := ours.keys() - set(whole.namelist()):
            raise BuildError(f"{overlays}: the standard library has no {', '.join(sorted(missing))}")
        for name in sorted(name for name in whole.namelist() if not name.endswith("/")):
            content = whole.read(name)
            if name in ours:
                kept = name.removesuffix(".py") + "_whole.py"
                archive.writestr(zipfile.ZipInfo(kept, _FIXED_TIME), content, zipfile.ZIP_DEFLATED, 9)
                content = ours[name]
            archive.writestr(zipfile.ZipInfo(name, _FIXED_TIME), content, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


class Compiled(NamedTuple):
    """What compile_packs.mjs wrote: a zip, two folders and the names of the modules left out."""

    folder: Path

    @property
    def stdlib_zip(self) -> bytes:
        """The standard library that the interpreter starts with: a stored zip of `.pyc`."""
        return (self.folder / "boot.zip").read_bytes()

    @property
    def whole_stdlib(self) -> bytes:
        """The whole standard library, for what the traced one turns out to lack: a zip of sources."""
        return (self.folder / STDLIB).read_bytes()

    @property
    def core(self) -> Path:
        """The files of the core, and of the standard library for it."""
        return self.folder / "core"

    @property
    def record(self) -> Path:
        """The standard library that only checking a pasted record needs."""
        return self.folder / "record"

    @property
    def omitted(self) -> str:
        """The standard modules that are in neither, separated by spaces."""
        return (self.folder / "omitted.txt").read_text(encoding="utf-8")


def _key(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                content = file.read_bytes()
                digest.update(f"{file.relative_to(path)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def compiled(root: Path, *, wheel: Path, wheels: Path, cache: Path) -> Compiled:
    """Trace and compile in Pyodide under Node. `wheel`: the project's unpacked wheel; `wheels`: pydantic's.

    The result is kept in `cache` by what it was made from. Raises BuildError with Node's own message.
    """
    tools = [
        HERE / name
        for name in ("compile_packs.mjs", "compile_packs.py", "pyodide_host.mjs", "request_mix.py", "traced.py")
    ]
    key = _key([*tools, root / HASHES, root / "requirements/wasm.txt", root / "site_assets/py", wheel])
    target = cache / key
    if target.is_dir():
        return Compiled(target)
    shutil.rmtree(cache, ignore_errors=True)
    work = cache / "work"
    work.mkdir(parents=True)
    stdlib = work / STDLIB
    stdlib.write_bytes(with_overlays((root / PYODIDE / STDLIB).read_bytes(), root / OVERLAYS))
    command = ["node", "--liftoff", "--no-wasm-tier-up", str(HERE / "compile_packs.mjs")]
    arguments = [root / PYODIDE, stdlib, wheel, wheels, work]
    try:
        subprocess.run([*command, *map(str, arguments)], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildError("node was not found: the site needs Node 20 or newer") from None
    except subprocess.CalledProcessError as error:
        raise BuildError(f"compiling the site's Python failed:\n{error.stderr.strip()}") from error
    work.rename(target)
    return Compiled(target)
