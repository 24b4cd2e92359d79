"""What the worker runs in Python: it hands over `enginemem.web.handle` and reports a module that the site left out.

The site ships only those modules of the standard library that the core was seen to import. Should another one be
asked for, the worker hears of it, fetches the whole library and asks again.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import zipimport
from collections.abc import Callable, Sequence
from types import ModuleType

Handle = Callable[[str], str]
SITE_PACKAGES = "/lib/python3.14/site-packages"


class LeftOut:
    """The last finder on the path: it finds nothing, but tells of a standard module that was not shipped."""

    def __init__(self, names: frozenset[str], report: Callable[[str], object]) -> None:
        self.names = names
        self.report = report

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Report `name` when the whole library would have had it."""
        del path, target
        if name in self.names:
            self.report(name)


def start(left_out: str, report: Callable[[str], object]) -> Handle:
    """Import the core and return its door. `left_out`: names of the omitted modules, separated by spaces."""
    gc.disable()
    sys.meta_path.append(LeftOut(frozenset(left_out.split()), report))  # type: ignore[arg-type]
    from enginemem.web import handle  # noqa: PLC0415 - after the finder, which guards this import too

    # What is alive now stays: later collections need not look at it.
    gc.freeze()
    gc.enable()
    return handle


def whole_library_is_there() -> None:
    """Forget what was not found: /lib/python314.zip has been replaced by the whole standard library."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, LeftOut)]
    directories: dict[str, object] = zipimport._zip_directory_cache  # type: ignore[attr-defined]
    directories.clear()
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()


def join_packages() -> None:
    """Let packages of the small library find their further modules, which a pack has put beside the site's own."""
    for name, module in list(sys.modules.items()):
        folder = f"{SITE_PACKAGES}/{name.replace('.', '/')}"
        path = getattr(module, "__path__", None)
        if isinstance(path, list) and folder not in path and os.path.isdir(folder):
            path.append(folder)  # a package of the zip
    importlib.invalidate_caches()
