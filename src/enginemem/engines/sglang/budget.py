"""The bytes that SGLang grants to the KV pool on one GPU: free memory after loading, less the slack.

The engine computes in GiB as doubles; the same operations in the same order give the same bytes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from enginemem.release import EngineRelease
from enginemem.units import GIB, Exact


def as_gib(value: Exact) -> float:
    """Bytes as GiB, rounded once to the nearest double."""
    if isinstance(value, int):
        return value / GIB
    return value.numerator / (value.denominator * GIB)


class NoMemory(NamedTuple):
    """The loaded weights leave nothing under the fraction: the least viable fraction and the engine's suggestion."""

    minimum_fraction: float
    suggested_fraction: float


class Budget(NamedTuple):
    """GiB held back as slack and what is left of the free memory, before a recurrent-state pool."""

    slack: float
    rest: float


def slack_gib(before: float, fraction: float) -> float:
    """GiB that stay free after weights and pool: graphs, activations, tables and workspaces live there."""
    return before * (1 - fraction)


def budget(before: float, after: float, *, fraction: float, multimodal: float = 0.0) -> Budget:
    """What is left for the pool, GiB, from the free GiB before and after loading.

    Source rule: kv_cache_configurator.py KVCacheConfigurator._profile_available_bytes.
    """
    slack = slack_gib(before, fraction)
    return Budget(slack, after - slack - multimodal)


def pool_bytes(rest: float) -> int:
    """The rest in bytes, cut to a whole number as the engine does."""
    return int(rest * GIB)


def no_memory(release: EngineRelease, before: float, after: float) -> NoMemory:
    """The figures of the engine's message when the loaded weights leave nothing."""
    minimum = 1 - after / before
    scale = release.integer("suggestion_scale")
    return NoMemory(minimum, math.ceil(minimum * scale) / scale)


def multimodal_gib(release: EngineRelease, *, multimodal: bool, transport: str) -> float:
    """GiB set aside for image embeddings and their transport (mm_runtime_reservation_gb)."""
    if not multimodal:
        return 0.0
    mib = release.integer("vision_cache_mib")
    if transport in release.values["vision_transports"]:
        mib += release.integer("vision_transport_mib")
    return mib / 1024


class StatePool(NamedTuple):
    """The pool of recurrent states: slots without the padding slot, and GiB left for keys and values."""

    slots: int
    rest: float


def state_pool(
    rest: float, *, bytes_each: int, share: float, slots: int | None = None, draft: tuple[int, int, int] | None = None
) -> StatePool:
    """Recurrent-state slots out of `rest` GiB, `bytes_each` a slot, when `share` is states to keys and values.

    `slots` fixes the count. `draft` is (draft tokens, request cap of this scheduler, slots a request) under
    speculative decoding, whose intermediate states come out of the rest first.
    Source rule: kv_cache_configurator.py KVCacheConfigurator._handle_max_mamba_cache.
    """
    if slots is None:
        granted = rest * share / (1 + share) * GIB
        if draft is None:
            slots = int((granted - bytes_each) // bytes_each)
        else:
            slots = int((granted - bytes_each * (1 + draft[0])) // (bytes_each * (1 + draft[0] / draft[2])))
    if draft is not None:
        rest -= bytes_each * (min(draft[1], slots // draft[2]) + 1) * draft[0] / GIB
    return StatePool(slots, rest - (slots + 1) * bytes_each / GIB)
