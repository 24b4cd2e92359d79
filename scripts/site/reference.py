"""The site as it would be with Pyodide's files as they come: what the benchmark compares the real one with."""

from __future__ import annotations

import shutil
from pathlib import Path

from scripts.site.assets import Release
from scripts.site.runtime import PYODIDE

_DOWNLOAD = """
/** Pyodide fetches for itself. */
export const FIRST = [];

export async function downloadPython() {
  return { core: await (await fetch(new URL("./CORE", import.meta.url))).arrayBuffer() };
}
"""
_BOOT = """
/** Pyodide as its documentation says. */
import { runtime } from "./release.js";

const folder = new URL(runtime, import.meta.url).href;

export async function boot({ core }) {
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: folder });
  UNPACK
  const handle = python.pyimport("enginemem.web").handle;
  return { answer: (request) => handle(request) };
}
"""
_WHEEL = 'python.unpackArchive(core, "wheel", { extractDir: "/lib/python3.14/site-packages" });'
_PACK = """
  const stream = new Blob([core]).stream().pipeThrough(new DecompressionStream("gzip"));
  const pack = new Uint8Array(await new Response(stream).arrayBuffer());
  const end = pack.indexOf(10);
  let at = end + 1;
  for (const [name, size] of JSON.parse(new TextDecoder().decode(pack.subarray(0, end)))) {
    python.FS.mkdirTree(name.slice(0, name.lastIndexOf("/")));
    python.FS.writeFile(name, pack.subarray(at, (at += size)));
  }
"""


def write(root: Path, site: Path, release: Release, target: Path, *, wheel: Path | None) -> None:
    """Copy the built site to `target`, with Pyodide's own files and loading, and without a service worker.

    The core comes as the project's `wheel`; or, with None, precompiled as in the real site.
    """
    shutil.copytree(site, target)
    (target / "sw.js").unlink()
    runtime, app = target / release.runtime, target / release.app
    shutil.rmtree(runtime)
    runtime.mkdir()
    for path in (root / PYODIDE).iterdir():
        if path.is_file():
            shutil.copyfile(path, runtime / path.name)
    if wheel is not None:
        shutil.copyfile(wheel, app / wheel.name)
    core = wheel.name if wheel is not None else "core.bin"
    (app / "download.js").write_text(_DOWNLOAD.replace("CORE", core), encoding="utf-8")
    unpack = _PACK if wheel is None else _WHEEL
    (app / "worker-boot.js").write_text(_BOOT.replace("UNPACK", unpack.strip()), encoding="utf-8")
