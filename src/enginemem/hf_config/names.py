"""Patterns of module names, as checkpoints list the modules that a quantiser takes or leaves alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from math import factorial

from enginemem.inputs import FieldError, InvalidInputs

MOST_STEPS = 400_000_000
"""Steps that trying the patterns of a file may take, at worst: about a second. Published files need a hundredth."""
_MOST_EACH = 1_562_500
"""Steps that trying one expression may take."""
MOST_WILD = 1_024
"""Expressions of one list; names, and names with a star at their end, are looked up and do not count."""

_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.")
"""What checkpoints put before the names here: multimodal ones, plain ones, and Nemotron-H."""
_ANYWHERE = (".*", "(?:.*\\.)?")
"""How expressions start that no prefix keeps from matching."""
_LENGTH = 64
"""Characters of the longest names."""
_SAFE = 200
_QUANTIFIER, _WILD = re.compile(r"(?<!\\)[*+{]"), set("*?[")


class Budget:
    """The steps that are left to the lists of one file."""

    def __init__(self) -> None:
        self.left = MOST_STEPS


class Names:
    """Patterns of module names: names, runs of their dotted parts, shell wildcards, or `re:` expressions.

    A module stands for its parts, and checkpoints of multimodal models prefix the language model's names. `where` is the
    list's place in the file, `budget` is shared with other lists of it. Raises InvalidInputs for expressions that could
    run for ages, at once or once they have.
    """

    def __init__(self, patterns: Iterable[str], where: str = "", budget: Budget | None = None) -> None:
        self._where, self._budget = where, budget or Budget()
        self._plain: set[str] = set()
        self._starts: dict[int, set[str]] = {}
        self._wild: list[tuple[re.Pattern[str], int]] = []
        for pattern in patterns:
            short = _short(pattern.removesuffix("."))
            start = short.removesuffix("*")
            if len(self._wild) > MOST_WILD:
                self._refuse(f"more than {MOST_WILD:,} expressions", f"at most {MOST_WILD:,}")
            if pattern.startswith("re:"):
                compiled = self._compiled(pattern[3:])
                tried = 1 if compiled.pattern.startswith(_ANYWHERE) else len(_PREFIXES)
                self._wild.append((compiled, _steps(pattern) * tried))
            elif start and start != short and not _WILD & set(start):
                # Longer ones are the start of no name.
                if len(start) <= _SAFE:
                    self._starts.setdefault(len(start), set()).add(start)
            elif _WILD & set(short):
                for text in (short, f"{short}.*"):
                    compiled = re.compile("(?:.*\\.)?" + translate(text[:_SAFE]))
                    self._wild.append((compiled, _LENGTH * (2 + text.count("*"))))
            else:
                self._plain.add(short)
        self._each = sum([steps for _, steps in self._wild])
        self._known: dict[str, bool] = {}
        # Without a digit in any expression, names that differ in their digits alone match alike.
        self._alike = not any(re.search(r"\d", compiled.pattern) for compiled, _ in self._wild)

    def __contains__(self, name: str) -> bool:
        tails, runs = _runs(name)
        if any(rest[:length] in starts for rest in tails for length, starts in self._starts.items()):
            return True
        return not runs.isdisjoint(self._plain) or (bool(self._wild) and self._matches(name))

    def _matches(self, name: str) -> bool:
        key = re.sub(r"\d", "0", name) if self._alike else name
        if key not in self._known:
            self._budget.left -= self._each
            if self._budget.left < 0:
                count = len(self._wild)
                given = "1 pattern" if count == 1 else f"{count:,} patterns"
                self._refuse(given, "fewer or simpler patterns for so many layers")
            usual, every = (key, f"model.{key}"), (key, *[prefix + key for prefix in _PREFIXES])
            self._known[key] = any(
                wild.match(name)
                for wild, _ in self._wild
                for name in (usual if wild.pattern.startswith(_ANYWHERE) else every)
            )
        return self._known[key]

    def _compiled(self, text: str) -> re.Pattern[str]:
        # A repeated group can take a time that doubles with every character.
        if len(text) > _SAFE or re.search(r"\)[*+{]", text) or _steps(text) > _MOST_EACH:
            self._refuse(repr(text[:_LENGTH]), f"expressions of at most {_SAFE} characters without repeated groups")
        try:
            return re.compile(text)
        except re.error:
            self._refuse(repr(text[:_LENGTH]), "a regular expression")
            raise

    def _refuse(self, given: str, allowed: str) -> None:
        raise InvalidInputs([FieldError(self._where, given, allowed)])


_FUSED = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"}
_FUSED |= {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
_FUSED |= {
    "in_proj_qkv": "in_proj_qkvz",
    "in_proj_z": "in_proj_qkvz",
    "in_proj_b": "in_proj_ba",
    "in_proj_a": "in_proj_ba",
}
_EXPERTS = ("mlp.", "feed_forward.")


def spellings(name: str) -> tuple[str, ...]:
    """The names that checkpoints have for a matrix: its own, and that of the matrix which some of them keep it in (Phi,
    Qwen3-Next). Experts stand in `block_sparse_moe` too (Mixtral, MiniMax)."""
    start, _, last = name.rpartition(".")
    found = [name] if last not in _FUSED else [name, f"{start}.{_FUSED[last]}"]
    for prefix in _EXPERTS:
        if f"{prefix}experts." in name or f"{prefix}shared_expert" in name:
            found += [other.replace(prefix, "block_sparse_moe.", 1) for other in found]
    return tuple(found)


@lru_cache(maxsize=4_096)
def _runs(name: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The ends of a name from each of its dotted parts on, and every run of its parts."""
    parts = name.split(".")
    tails = tuple([".".join(parts[first:]) for first in range(len(parts))])
    runs = [".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]
    return tails, frozenset(runs)


def _steps(text: str) -> int:
    """Steps that trying an expression takes at worst: the places where its repeats can end."""
    repeats = len(_QUANTIFIER.findall(text))
    ends: int = _LENGTH**repeats
    return ends // factorial(repeats) + _LENGTH


def _short(name: str) -> str:
    """A name without the prefixes that multimodal checkpoints put before `layers`."""
    for prefix in _PREFIXES:
        if name.startswith(prefix) and name != prefix:
            return name[len(prefix) :]
    return name
