"""Nothing at first: `urllib.parse` needs the module only for addresses with a host in brackets."""

from __future__ import annotations

from importlib import import_module


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("ipaddress_whole"), name)
