"""Runs the published comparisons on every CPython >= 3.11 that is at hand, and says which ran.

The core needs nothing installed, so each interpreter reads it from `src/`. The full JSON over random scenarios must be
the same on all of them: one differing byte fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
CODE = """
import hashlib, random, sys
sys.path[:0] = ["src", "tests"]
from enginemem import Scenario, compare
from enginemem.worked import check_case, worked_cases
from random_scenarios import random_scenario
checks = [check for case in worked_cases() for check in check_case(case)]
equal = sum(check.equal for check in checks)
rng, digest = random.Random(7), hashlib.sha256()
for _ in range(300):
    digest.update(compare(Scenario(**random_scenario(rng))).to_json().encode())
print(sys.version.split()[0], f"{equal} of {len(checks)} published figures equal;", "digest", digest.hexdigest()[:16])
sys.exit(equal != len(checks))
"""


def interpreters() -> list[str]:
    """The commands of all interpreters found: on the path, and beside this one where several are installed."""
    found = []
    for version in VERSIONS:
        name = f"python{version}"
        beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}*/bin/{name}"))
        command = str(beside[-1]) if beside else shutil.which(name)
        if command is not None and _runs(command):
            found.append(command)
    return found


def _runs(command: str) -> bool:
    return subprocess.run([command, "-c", ""], check=False, capture_output=True).returncode == 0


def main() -> int:
    """Exit status 0 when every interpreter agrees with the published figures and with the others."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    lines = []
    status = 0
    for command in interpreters():
        run = subprocess.run(
            [command, "-c", CODE], check=False, capture_output=True, text=True, cwd=ROOT, env=environment
        )
        print(run.stdout.strip() or run.stderr.strip(), flush=True)
        status |= run.returncode
        lines.append(run.stdout.rpartition(" ")[2])
    if len(set(lines)) != 1:
        print("the interpreters differ")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
