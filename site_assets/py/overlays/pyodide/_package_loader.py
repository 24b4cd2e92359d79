"""What Pyodide's start needs of its package loader; the loader itself is imported when a wheel is to be unpacked.

Takes the place of `pyodide/_package_loader.py`, which becomes `pyodide/_package_loader_whole.py`: that one imports
zipfile, shutil and tempfile, and the page has no packages at start.
"""

from __future__ import annotations

from importlib import import_module


class _Place:
    """A folder whose name Pyodide asks for with `__str__`, as it would of a Path."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


SITE_PACKAGES = _Place("/lib/python3.14/site-packages")
DSO_DIR = _Place("/usr/lib")


def init_loaded_packages() -> None:
    """Nothing is installed yet."""


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("pyodide._package_loader_whole"), name)
