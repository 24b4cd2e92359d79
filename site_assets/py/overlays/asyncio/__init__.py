"""asyncio as Pyodide's event loop needs it at start; every other name is found when it is first asked for.

Takes the place of CPython's `asyncio/__init__.py` in the site's standard library. The page's Python answers one call
at a time and never opens a socket, so sockets, streams, TLS and subprocesses stay out of the first download.
"""

from __future__ import annotations

from importlib import import_module

from .coroutines import *
from .events import *
from .exceptions import *
from .futures import *
from .locks import *
from .queues import *
from .tasks import *
from .timeouts import *

_LATER = (
    "base_events", "graph", "protocols", "runners", "streams", "subprocess", "taskgroups", "threads", "transports",
    "unix_events",
)  # fmt: skip
# Pyodide sets its own policy; it derives from this one and makes its own loops.
DefaultEventLoopPolicy = events._BaseDefaultEventLoopPolicy  # type: ignore[name-defined]  # noqa: F821


def run(main: object, **options: object) -> object:
    """Run a coroutine to its end."""
    return import_module("asyncio.runners").run(main, **options)


def __getattr__(name: str) -> object:
    if not name.startswith("__"):
        for module in _LATER:
            found = import_module(f"asyncio.{module}")
            if name == module:
                return found
            if name in found.__all__:
                globals()[name] = getattr(found, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
