"""Runs inside Pyodide: which modules of the standard library are imported by now. Imports nothing itself but sys."""

from __future__ import annotations

import sys

STDLIB_ZIP = "/lib/python314.zip"


def loaded_modules() -> set[str]:
    """The files of the standard library's zip that are imported by now."""
    prefix = f"{STDLIB_ZIP}/"
    origins = [getattr(getattr(module, "__spec__", None), "origin", None) for module in list(sys.modules.values())]
    return {origin.removeprefix(prefix) for origin in origins if origin and origin.startswith(prefix)}
