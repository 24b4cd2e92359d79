"""Measures the built site in Chromium: bytes, time to the first live result, keystrokes, Lighthouse.

Time to the live result is taken on a line of 20 Mbit/s with 40 ms a request, for this site and for Pyodide's files as
they come, in turns: read the ratios, the seconds are this machine's. Build the site first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Playwright, sync_playwright
from scripts.site import boots, budget, bundle, keystrokes, lighthouse, preset_times, reference
from scripts.site.assets import Release

SITE = ROOT / "site"
WEIGHTS = ROOT / ".cache/site/weights"
LIMITS = {"cold": 0.60, "warm": 0.50}


def built_release() -> Release:
    """The folders of the site as it was built."""
    (app,) = (SITE / "assets/app").iterdir()
    (runtime,) = (SITE / "assets/py").iterdir()
    return Release(f"assets/py/{runtime.name}", f"assets/app/{app.name}")


def print_bytes() -> None:
    """The first visit by file, and the page's own share: what is neither Python nor the theme."""
    visit = budget.weighed(SITE, built_release(), WEIGHTS)
    print(visit.table())
    theme = ("assets/javascripts/", "assets/stylesheets/", "search/")
    python = (f"{built_release().runtime}/", f"{built_release().app}/core.bin")
    own = [item for item in visit.weights if not item.path.startswith((*theme, *python))]
    print(
        f"the page's own share: {sum([item.usual for item in own]):,} bytes, brotli {sum([item.brotli for item in own]):,}"
    )


def print_boots(playwright: Playwright, rounds: int, scratch: Path) -> None:
    """Medians, and the ratios to Pyodide's files as they come."""
    release = built_release()
    wheel = bundle.build_wheel(ROOT, scratch / "wheel")
    reference.write(ROOT, SITE, release, scratch / "plain", wheel=wheel)
    reference.write(ROOT, SITE, release, scratch / "compiled", wheel=None)
    folders = {
        "this site": SITE,
        "Pyodide's files, the core's wheel": scratch / "plain",
        "Pyodide's files, the core compiled as here": scratch / "compiled",
    }
    times = boots.in_turns(playwright, folders, rounds)
    ours = times["this site"]
    for name, found in times.items():
        print(f"{name}:")
        for kind, limit in LIMITS.items():
            ratio = ours.median(kind) / found.median(kind)
            against = "" if found is ours else f", this site takes {ratio:.2f} of it (allowed {limit:.2f})"
            print(f"  {kind} {found.median(kind):,.0f} ms{against}")


def print_keystrokes(playwright: Playwright, edits: int, scratch: Path) -> None:
    """From a key to the changed figures."""
    copy = scratch / "timed"
    shutil.copytree(SITE, copy)
    keystrokes.timed_worker(copy / built_release().app)
    for keys in keystrokes.measured(playwright, copy, edits):
        print(keys.summary())
    presets = preset_times.slowest(playwright, copy, built_release().app)
    print(f"Python for the figures of a preset in the browser, slowest of {len(presets)} presets and sizes, medians:")
    for took, model, tp in presets[:5]:
        print(f"  {took:.1f} ms  {model} at tp {tp}")


def print_lighthouse(runs: int) -> None:
    """Scores and paint times."""
    for profile, values in lighthouse.medians(ROOT, SITE, runs).items():
        print(f"Lighthouse {profile}: " + ", ".join([f"{name} {value:.6g}" for name, value in values.items()]))


def main() -> None:
    """Print the measurements as they come."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="profiles for each way to boot (default: %(default)s)")
    parser.add_argument("--edits", type=int, default=200, help="measured edits (default: %(default)s)")
    parser.add_argument("--lighthouse", type=int, default=5, help="Lighthouse runs a profile (default: %(default)s)")
    options = parser.parse_args()
    print_bytes()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        scratch = Path(folder)
        if options.edits:
            print_keystrokes(playwright, options.edits, scratch)
        if options.rounds:
            print_boots(playwright, options.rounds, scratch)
    if options.lighthouse:
        print_lighthouse(options.lighthouse)


if __name__ == "__main__":
    main()
