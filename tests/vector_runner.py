"""Runs vector files: reads the cases, compares expected with got field by field, counts, and says every difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Beside = Callable[[str], Any]
Pair = tuple[Any, Any]
Handlers = Mapping[str, Callable[[Case, Beside], Pair]]

MISSING = "(not produced)"


class Within:
    """A law: it equals a measured value inside its interval, unless the interval is wider than `widest` of the law."""

    def __init__(self, law: float, low: float, high: float, *, widest: float = 1.0) -> None:
        self.law, self.low, self.high, self.sharp = law, low, high, high - low <= widest * law

    @classmethod
    def near(cls, law: float, share: float) -> Within:
        """The interval of `share` around the law."""
        return cls(law, law * (1 - share), law * (1 + share))

    def holds(self, measured: float) -> bool:
        """Whether the measured value agrees with the law."""
        return self.sharp and self.low <= measured <= self.high

    def __repr__(self) -> str:
        return f"{self.law:.2f} ({self.low:.2f} to {self.high:.2f})"


class NotSteady(Exception):
    """A case marked as a transient: reported, and not counted as passed."""


def differences(expected: Any, got: Any, path: str = "") -> Iterator[str]:
    """Every expected field that `got` does not equal, as `path: expected X, got Y`; floats agree to 1e-12 relative."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key, value in expected.items():
            yield from differences(value, got.get(key, MISSING), f"{path}.{key}" if path else str(key))
    elif isinstance(expected, list) and isinstance(got, (list, tuple)) and len(expected) == len(got):
        for index, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif not _equal(expected, got):
        yield f"{path}: expected {expected!r}, got {got!r}"


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(got, Within):
        return got.holds(expected)
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, float) and isinstance(got, (int, float)):
        return isclose(expected, got, rel_tol=1e-12)
    return bool(expected == got)


def cases_of(name: str, document: Case) -> list[Case]:
    """The cases of a file, with those that must be refused; the rows of published maxima come in their groups, each
    model's shape is a case."""
    if name == "tensorrt_llm/measured_maxima":
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for row in document["rows"]:
            groups.setdefault(tuple(row[:4]), []).append(row)
        return [{"id": "/".join(map(str, key)), "rows": rows} for key, rows in groups.items()]
    if name == "vllm/model_shapes":
        return [{"id": key, **shape} for key, shape in document.get("models", {}).items()]
    return [*document.get("cases", []), *document.get("errors", [])]


def run_file(path: Path, handlers: Handlers, companions: Path) -> tuple[int, int]:
    """Passed and failed cases of one file; every difference is printed."""
    content = json.loads(path.read_text(encoding="utf-8"))
    document = content if isinstance(content, dict) else {}
    name = str(document.get("set", "(no set)"))
    handler, cases = handlers.get(name), cases_of(name, document)
    if handler is None or not cases:
        print(f"{path}: {'no cases' if handler else f'unknown set {name}'}")
        return 0, 1

    def beside(companion: str) -> Any:
        places = (path.parent, companions / name.partition("/")[0], companions)
        found = next(place / companion for place in places if (place / companion).exists())
        return json.loads(found.read_text(encoding="utf-8"))

    passed = failed = 0
    for number, case in enumerate(cases):
        label = f"{name} {case.get('id', case.get('name', number))}"
        try:
            found = list(differences(*handler(case, beside)))
        except NotSteady as transient:
            print(f"{label}: {transient}")
            continue
        except Exception as error:  # a crash on one case is that case's failure, and the others still run
            found = [f"{type(error).__name__}: {error}"]
        for line in found:
            print(f"{label}: {line}")
        passed, failed = (passed, failed + 1) if found else (passed + 1, failed)
    return passed, failed


def run_files(arguments: list[str], handlers: Handlers, *, companions: Path) -> int:
    """Run all files; 1 when anything failed or nothing was given. Companion files are looked for beside each file,
    then in `companions`."""
    results = [run_file(Path(argument), handlers, companions) for argument in arguments]
    passed, failed = (sum(column) for column in zip(*results, strict=True)) if results else (0, 1)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
