"""The site's own assets in two folders named after their content: the Python runtime, and what each release changes.

`assets/py/<hash>/`: interpreter, standard library, pydantic's wheels. `assets/app/<hash>/`: scripts, style sheets, the
core. A page names the folders, so everything that it loads belongs to it; a new release is a new folder.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scripts.site.inline import with_inline
from scripts.site.packs import compressed, files_under, packed
from scripts.site.runtime import INTERPRETER, BuildError, Compiled

STAGED = "assets/site"
"""Where the pages' own files stand while MkDocs runs; the templates name them there."""
SCRIPTS = ("client", "download", "loader", "start", "worker", "worker-boot")
_PYTHON_LIB = "/lib/python3.14/site-packages"


class Release(NamedTuple):
    """The folders of one build, relative to the site."""

    runtime: str
    app: str


def content_hash(folder: Path) -> str:
    """Sixteen hex digits over the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _sealed(folder: Path, parent: Path) -> Path:
    target = parent / content_hash(folder)
    parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    return folder.rename(target)


def runtime_folder(site: Path, pyodide: Mapping[str, bytes], python: Compiled, wheels: list[Path]) -> str:
    """Write the runtime's folder and return its path in the site."""
    work = site / "assets/py/work"
    (work / "wheels").mkdir(parents=True)
    for name in INTERPRETER:
        content = pyodide[name]
        if name.endswith(".mjs"):
            # The map is not served, and a browser's tools would ask for it.
            content = re.sub(rb"\n//# sourceMappingURL=.*\n?$", b"\n", content)
        (work / name).write_bytes(content)
    (work / "stdlib.bin").write_bytes(compressed(python.stdlib_zip))
    (work / "stdlib-whole.zip").write_bytes(python.whole_stdlib)
    (work / "record.bin").write_bytes(packed(files_under(python.record)))
    for wheel in wheels:
        shutil.copyfile(wheel, work / "wheels" / wheel.name)
    return _sealed(work, site / "assets/py").relative_to(site).as_posix()


def app_folder(site: Path, staged: Path, *, runtime: str, python: Compiled, lock: Mapping[str, Any]) -> str:
    """Seal `staged`, the pages' own files, with the core and the release's facts; returns its path in the site."""
    (staged / "core.bin").write_bytes(packed(files_under(python.core)))
    files = {name: _sizes(site / runtime / name) for name in ("pyodide.asm.wasm", "stdlib.bin")}
    facts = {
        "runtime": f"../../../{runtime}/",
        "sizes": {**files, "core.bin": _sizes(staged / "core.bin")},
        "packages": lock,
        "leftOut": python.omitted,
    }
    text = "".join([f"export const {name} = {json.dumps(fact, sort_keys=True)};\n" for name, fact in facts.items()])
    (staged / "release.js").write_text(f"/** Written by the build: what this release is made of. */\n\n{text}", "utf-8")
    return _sealed(staged, site / "assets/app").relative_to(site).as_posix()


def _sizes(path: Path) -> dict[str, int]:
    """The file's bytes, raw and as they usually cross the line."""
    raw = path.read_bytes()
    line = len(gzip.compress(raw, 9)) if path.suffix == ".wasm" else len(raw)
    return {"raw": len(raw), "line": line}


_STATIC_IMPORT = re.compile(r'^\s*(?:import|export)\b[^;"\']*?["\'](\./[\w.-]+)["\']', re.MULTILINE)


def imported_scripts(folder: Path, name: str) -> list[str]:
    """The scripts that a module of `folder` imports, directly or not, each once, in the order of asking."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        for target in _STATIC_IMPORT.findall((folder / waiting.pop(0)).read_text(encoding="utf-8")):
            script = target.removeprefix("./")
            if script not in found:
                found.append(script)
                waiting.append(script)
    return found


_MODULE = re.compile(rf'<script type="module" src="([^"]*?){STAGED}/([\w.-]+)"></script>')


_EARLY = re.compile(rf'<script src="[^"]*?{STAGED}/early\.js"></script>')


def sealed_page(html: str, site: Path, app: str) -> str:
    """A built page with the sealed folder's name in place of the staged one, and its modules announced in the head.

    Where the page has an early script, that script decides when: a page that shows figures paints them first.
    """
    hints: list[str] = []
    for prefix, script in _MODULE.findall(html):
        modules = [script, *imported_scripts(site / app, script)]
        if "client.js" in modules:
            modules.insert(0, "start.js")
            hints.append(f'<script type="module" async src="{prefix}{app}/start.js"></script>')
        hints += [f'<link rel="modulepreload" fetchpriority="low" href="{prefix}{app}/{name}">' for name in modules]
    announced = "".join(dict.fromkeys(hints))
    early = _EARLY.search(html)
    if early:
        template = f'<template id="em-hints">{announced}</template>'
        html = f"{html[: early.start()]}{template}{html[early.start() :]}"
    else:
        html = html.replace("</head>", f"{announced}</head>", 1)
    return html.replace(f"{STAGED}/", f"{app}/")


def seal_pages(site: Path, app: str) -> None:
    """Every page of the site, sealed, its small style sheets in line.

    Raises BuildError when a page names a staged file that is not there."""
    for page in sorted(site.rglob("*.html")):
        html = page.read_text(encoding="utf-8")
        for name in re.findall(rf"{STAGED}/([\w./-]+)", html):
            if not (site / app / name).is_file():
                raise BuildError(f"{page.relative_to(site)} names {STAGED}/{name}, which does not exist")
        page.write_text(with_inline(sealed_page(html, site, app), site, page), encoding="utf-8")
