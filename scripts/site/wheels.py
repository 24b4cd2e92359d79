"""Pydantic for the browser: five wheels by hash from a committed lock, checked together by micropip."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, NamedTuple

from scripts.site.runtime import HERE, PYODIDE, BuildError

LOCK = Path("requirements/wasm.txt")
PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14", "--implementation", "cp")
CHECKER = "micropip"
_PIN = re.compile(r"^([\w.-]+)==(\S+) \\\n\s+--hash=sha256:([0-9a-f]{64})$", re.MULTILINE)


class Pin(NamedTuple):
    """One line of the lock: a wheel by name, version and sha256."""

    name: str
    version: str
    sha256: str

    def file_in(self, folder: Path) -> Path | None:
        """This pin's wheel in a folder: right name, version and content, or None."""
        stem = f"{self.name.replace('-', '_')}-{self.version}-"
        for path in folder.glob(f"{stem}*.whl"):
            if hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256:
                return path
        return None


def pins(root: Path) -> list[Pin]:
    """The lock, in its order. Raises BuildError when a line of it has another form."""
    text = (root / LOCK).read_text(encoding="utf-8")
    found = [Pin(*match) for match in _PIN.findall(text)]
    if len(found) != len([line for line in text.splitlines() if line and line[0] not in "# "]):
        raise BuildError(f"{LOCK}: every wheel is two lines, name==version and its sha256")
    return found


def fetch(root: Path, folder: Path) -> dict[Pin, Path]:
    """The locked wheels in `folder`, downloaded when they are not there yet.

    Pip is told the browser's platform: without it, or with another one, it would take a stub and not fail.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pins(root)
    if not all(pin.file_in(folder) for pin in wanted):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", *PLATFORM, "--require-hashes", "-r", str(root / LOCK), "-d", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"the browser's wheels could not be downloaded:\n{done.stderr.strip()}")
    files = {pin: pin.file_in(folder) for pin in wanted}
    if missing := [pin.name for pin, path in files.items() if path is None]:
        raise BuildError(f"pip brought another wheel than {LOCK} pins for: {', '.join(missing)}")
    for path in set(folder.glob("*.whl")) - set(files.values()):
        path.unlink()
    return {pin: path for pin, path in files.items() if path is not None}


def shipped(files: dict[Pin, Path]) -> dict[Pin, Path]:
    """The wheels that the site serves: all but micropip, which only the build needs."""
    return {pin: path for pin, path in files.items() if pin.name != CHECKER}


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        headers = HeaderParser().parsestr(archive.read(metadata).decode())
    needed = [line for line in headers.get_all("Requires-Dist", []) if "extra ==" not in line]
    names = [match[0] for line in needed if (match := re.match(r"[\w.-]+", line))]
    return [re.sub(r"[-_.]+", "-", name).lower() for name in names]


def _imports(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
    return sorted(name.removesuffix(".py") for name in tops)


def lock_entries(files: dict[Pin, Path]) -> dict[str, Any]:
    """The wheels as Pyodide's lock describes packages: it then loads them by name and checks each hash."""
    known = {pin.name for pin in files}
    return {
        pin.name: {
            "name": pin.name,
            "version": pin.version,
            "file_name": path.name,
            "install_dir": "site",
            "sha256": pin.sha256,
            "package_type": "package",
            "imports": _imports(path),
            "depends": sorted(set(_requirements(path)) & known),
            "unvendored_tests": False,
        }
        for pin, path in files.items()
    }


def check(root: Path, files: dict[Pin, Path]) -> None:
    """Let micropip install the wheels in Pyodide under Node: it refuses a set that does not fit together."""
    (checker,) = [path for pin, path in files.items() if pin.name == CHECKER]
    names = [path.name for path in (checker, *shipped(files).values())]
    command = ["node", "--liftoff", "--no-wasm-tier-up", str(HERE / "check_wheels.mjs"), str(root / PYODIDE)]
    done = subprocess.run([*command, str(checker.parent), *names], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"micropip refuses the browser's wheels:\n{done.stderr.strip()}")
