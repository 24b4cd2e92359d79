"""The constants that asyncio's signatures name; the module itself is imported when anything else is asked of it."""

from __future__ import annotations

from importlib import import_module

PIPE = -1
STDOUT = -2
DEVNULL = -3


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("subprocess_whole"), name)
