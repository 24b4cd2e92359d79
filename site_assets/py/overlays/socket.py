"""The constants that asyncio's signatures name; the module itself is imported when anything else is asked of it."""

from __future__ import annotations

from importlib import import_module

from _socket import AF_UNSPEC, AI_PASSIVE

__all__ = ["AF_UNSPEC", "AI_PASSIVE"]


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("socket_whole"), name)
