"""Running requests under an endless backlog.

Reserving to completion makes the count stand still: whatever ends is replaced by a request of the same reservation.
What can hold it lower is the start, not the memory: a prompt starts only in a step that has room for it, and prompts
that do not fit leave places empty. The overlap scheduler keeps a finished request's place for one step more.
The laws here were checked against the step rules of the specification with random output lengths.
"""

from __future__ import annotations

from math import isqrt

from enginemem.derivation import Derivation
from enginemem.engines.plan import SteadyState
from enginemem.engines.tensorrt_llm.admission import STATIC_BATCH, Limits
from enginemem.engines.tensorrt_llm.resolve import Configuration
from enginemem.release import EngineRelease
from enginemem.traffic import OutputMoments

RESERVED = "reserve to completion"
PREFILL = "room for a prompt in a step"
_Range = tuple[float, float, float]


def mean_running(*, places: int, occupied: float, prompt: int, max_num_tokens: int, chunk: int | None) -> _Range:
    """Mean, low and high of the running count.

    `places` is what admission allows, `occupied` the mean steps that a request holds its place, `chunk` the unit of
    chunked prefill in tokens (None: a prompt starts whole or not at all).
    """
    if chunk is not None:
        return _chunked(places, occupied, prompt, max_num_tokens, chunk)
    starts = places / occupied
    possible = max(0, int((max_num_tokens - (places - starts)) // prompt))
    if possible >= starts:
        return _nearly_full(places, starts / possible)
    whole = int(max_num_tokens // (prompt + occupied - 1))
    beside = max_num_tokens - (whole + 1) * prompt
    if beside <= whole * (occupied - 1):
        # So many prompts start in every step; one more never fits beside the requests that they become.
        mean = max(1.0, whole * occupied)
        return _around(mean, isqrt(int(mean)), places)
    # One prompt more starts whenever no more than `beside` requests generate.
    busy = beside / (occupied - 1)
    low = beside - (isqrt(beside) if 2 * busy > whole + 1 else 0)
    top = beside + whole + 1
    return min(max(beside, top - busy / 2), places), max(1.0, min(low, places)), float(min(top, places))


def _chunked(places: int, occupied: float, prompt: int, max_num_tokens: int, chunk: int) -> _Range:
    """With chunks every token of a step is used, and one request more is on its way in; a chunk needs its unit."""
    by_work = max_num_tokens * occupied / (prompt + occupied - 1) + 1
    most = min(by_work, max_num_tokens - min(chunk, prompt) + 1)
    if places <= most:
        return _nearly_full(places, places / most)
    return _around(most, isqrt(int(most)) + 1, places)


def _nearly_full(places: int, load: float) -> _Range:
    """All places taken, less those that wait for room in a step once starts need more than half of the steps' room."""
    if 2 * load <= 1:
        return float(places), float(places), float(places)
    waiting = isqrt(places) / 2
    if load < 1:
        waiting = min(waiting, load * load / (2 * (1 - load)))
    return places - waiting, float(places - isqrt(places)), float(places)


def _around(mean: float, spread: int, places: int) -> _Range:
    return min(mean, places), max(1.0, min(mean - spread, places)), float(min(mean + spread, places))


def record(
    config: Configuration,
    release: EngineRelease,
    derivation: Derivation,
    *,
    found: Limits,
    prompt: int,
    moments: OutputMoments,
    fixed: bool,
) -> SteadyState | None:
    """The steady state and its step; None for a static batch of unequal outputs, which shrinks until it is empty."""
    if config.policy == STATIC_BATCH:
        whole = float(found.running)
        return SteadyState(whole, whole, whole, "static batch of equal outputs", "reserved") if fixed else None
    places = min(found.by_memory, found.by_cap)
    extra = release.integer("overlap_extra_tokens")
    chunk = config.tokens_per_block if config.chunked_prefill else None
    occupied = moments.mean + extra
    mean, low, high = mean_running(
        places=places, occupied=occupied, prompt=prompt, max_num_tokens=config.max_num_tokens, chunk=chunk
    )
    derivation.add(
        "admission.steady",
        "Requests running in the steady state",
        "mean_running(places=places, occupied=mean_output + overlap, prompt=prompt, max_num_tokens=max_num_tokens, "
        "chunk=chunk)[0]",
        mean,
        "requests",
        {
            "places": (places, "requests"),
            "mean_output": (moments.mean, "tokens"),
            "overlap": (extra, "steps"),
            "prompt": (prompt, "tokens"),
            "max_num_tokens": (config.max_num_tokens, "tokens"),
            "chunk": (chunk, "tokens"),
        },
        "capacity_scheduler",
        "micro_batch",
        "overlap_scheduler",
        note="Under an endless backlog. Reserved places never shrink; prompts that find no room in a step leave them empty.",
    )
    if mean == places:
        regime = "reserved" if found.by_memory <= found.by_cap else "request_cap"
        return SteadyState(mean, low, high, RESERVED, regime)
    return SteadyState(mean, low, high, PREFILL, "token_budget")
