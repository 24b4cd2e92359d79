"""Builds the website into `site/`: pages, the Python runtime, the policy, the service worker; enforces the budgets.

`build_site.py --serve` serves it on localhost afterwards. Needs `npm ci` and the locked Python packages; nothing else
is fetched once the browser's wheels are in the cache. Equal inputs give equal files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.site import assets, budget, bundle, csp, fresh, pages, runtime, service_worker, theme_css, theme_js, wheels
from scripts.site.runtime import BuildError
from scripts.site.serve import SiteServer, is_free

CACHE = ROOT / ".cache/site"
SITE = ROOT / "site"
DEFAULT_PORT = 8000
# The theme's notice about its own future is for maintainers; dates in the output would change it every day.
QUIET = {"NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": "315532800", "PYTHONHASHSEED": "0"}


def check_data() -> None:
    """Raises BuildError when the packaged data is not what `data/` says."""
    command = [sys.executable, str(ROOT / "scripts/build_data.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"the data is stale or not valid:\n{done.stderr.strip()}")


def browser_wheels() -> dict[wheels.Pin, Path]:
    """Pydantic's wheels; micropip checks a set once."""
    files = wheels.fetch(ROOT, CACHE / "wheels")
    checked = CACHE / "wheels/checked"
    lock = (ROOT / wheels.LOCK).read_text(encoding="utf-8")
    if not checked.is_file() or checked.read_text(encoding="utf-8") != lock:
        wheels.check(ROOT, files)
        checked.write_text(lock, encoding="utf-8")
    return files


def mkdocs(staging: Path, site: Path) -> None:
    """Run MkDocs over the staged pages, every warning an error."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--clean",
        "--quiet",
        "-f",
        str(ROOT / "mkdocs.yml"),
    ]
    environment = {**os.environ, **QUIET, "DOCS_DIR": str(staging), "SITE_DIR": str(site)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"mkdocs refuses the pages:\n{(done.stderr + done.stdout).strip()}")


def build(site: Path = SITE) -> tuple[assets.Release, budget.Visit]:
    """Build the whole site into `site`. Raises BuildError with what is wrong."""
    with fresh.alone(CACHE):
        sources = fresh.sources(ROOT)
        built = _build(site)
        if site == SITE:
            fresh.record(site, CACHE, sources)
    return built


def _build(site: Path) -> tuple[assets.Release, budget.Visit]:
    check_data()
    pyodide = runtime.verified(ROOT / runtime.PYODIDE, ROOT / runtime.HASHES)
    locked = browser_wheels()
    shipped = wheels.shipped(locked)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        wheel = bundle.unpacked_wheel(ROOT, work / "wheel")
        python = runtime.compiled(ROOT, wheel=wheel, wheels=CACHE / "wheels", cache=CACHE / "compiled")
        pages.render_pages(ROOT, work / "pages")
        for name in assets.SCRIPTS:
            shutil.copyfile(ROOT / f"site_assets/js/{name}.js", work / "pages" / assets.STAGED / f"{name}.js")
        mkdocs(work / "pages", work / "site")
        built = work / "site"
        theme_css.trim(ROOT, built)
        theme_js.trim(built, ROOT / "site_assets/js/search-later.js")
        folder = assets.runtime_folder(built, pyodide, python, list(shipped.values()))
        lock = wheels.lock_entries(shipped)
        app = assets.app_folder(built, built / assets.STAGED, runtime=folder, python=python, lock=lock)
        release = assets.Release(folder, app)
        assets.seal_pages(built, app)
        csp.protect(built)
        service_worker.write(built, ROOT / "site_assets/js/sw.js", release)
        visit = budget.weighed(built, release, CACHE / "weights")
        budget.enforce(visit)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(built, site)
    return release, visit


def main(arguments: list[str] | None = None) -> int:
    """Command line. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--serve", action="store_true", help="serve the built site on localhost")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="the port to serve at (default: %(default)s)")
    parser.add_argument("--if-stale", action="store_true", help="build only when the site is not that of the sources")
    parser.add_argument("--verbose", action="store_true", help="print the bytes of a first visit, file by file")
    options = parser.parse_args(arguments)
    if options.serve:
        os.environ.setdefault("SITE_URL", f"http://localhost:{options.port}/")
        if not is_free(options.port):
            print(f"port {options.port} is taken: stop what listens there, or name another with PORT=", file=sys.stderr)
            return 1
    if options.if_stale and not options.serve and fresh.is_current(ROOT, SITE, CACHE):
        print("site/ is that of the sources")
        return 0
    print("building the site: a minute, and longer the first time", flush=True)
    try:
        _, visit = build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if options.verbose:
        print(visit.table())
    print(f"site/ is built: a first visit is {visit.usual / 1e6:.2f} MB, with brotli {visit.brotli / 1e6:.2f} MB")
    if options.serve:
        server = SiteServer(SITE, port=options.port)
        print(f"serving at {server.address}")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
