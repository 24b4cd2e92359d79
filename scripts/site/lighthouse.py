"""Lighthouse on the calculator page, mobile and desktop, the median of several runs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

from scripts.site.chromium import FLAGS, executable
from scripts.site.serve import SiteServer

CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
AUDITS = {"largest-contentful-paint": "LCP ms", "cumulative-layout-shift": "CLS", "total-blocking-time": "TBT ms"}


def _run(root: Path, address: str, preset: str) -> dict[str, Any]:
    command = [str(root / "node_modules/.bin/lighthouse"), address, "--quiet", "--output=json", "--output-path=stdout"]
    command += [f"--only-categories={','.join(CATEGORIES)}", f"--chrome-flags=--headless=new {' '.join(FLAGS)}"]
    if preset == "desktop":
        command.append("--preset=desktop")
    environment = {**os.environ, "CHROME_PATH": executable()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def medians(root: Path, site: Path, runs: int) -> dict[str, dict[str, float]]:
    """By profile: the median score of each category, and LCP, CLS and blocking time."""
    found: dict[str, dict[str, float]] = {}
    for preset in ("mobile", "desktop"):
        with SiteServer(site) as server:
            reports = [_run(root, server.address, preset) for _ in range(runs)]
        scores = {
            name: statistics.median([100 * report["categories"][name]["score"] for report in reports])
            for name in CATEGORIES
        }
        values = {
            label: statistics.median([report["audits"][audit]["numericValue"] for report in reports])
            for audit, label in AUDITS.items()
        }
        found[preset] = {**scores, **values}
    return found
