"""The scheduler step by step: capacity scheduler (GUARANTEED_NO_EVICT), then micro-batch scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from enginemem.units import ceil_div


class Request(NamedTuple):
    """One request, in tokens: its prompt, its output limit, and the output after which it really stops."""

    prompt: int
    max_new: int
    stops_after_output_tokens: int


class StepRow(NamedTuple):
    """One step: requests that ran, and blocks held after it by all that are present (the leaving ones included)."""

    batch_size: int
    blocks_held_after_step: int


class _Running:
    """A started request: blocks reserved to its completion, tokens generated."""

    __slots__ = ("made", "request", "reserved")

    def __init__(self, request: Request, reserved: int) -> None:
        self.request = request
        self.reserved = reserved
        self.made = 0


def scheduler_steps(
    requests: Iterable[Request],
    *,
    blocks: int,
    max_batch_size: int,
    max_num_tokens: int,
    tokens_per_block: int,
    steps: int,
) -> list[StepRow]:
    """The first `steps` steps when all `requests` wait from the start, in order.

    Without prefix reuse, windows, chunked prefill and the overlap scheduler's delay. A running request stays and keeps
    its reservation; the first waiting request that does not fit stops the search; a step ends at the first request
    that would exceed the token budget. Source rule: capacityScheduler.cpp GuaranteedNoEvictScheduler,
    microBatchScheduler.cpp MicroBatchScheduler.
    """
    waiting = list(requests)
    waiting.reverse()
    running: list[_Running] = []
    rows = []
    for _ in range(steps):
        free = blocks - sum([entry.reserved for entry in running])
        spare = max_num_tokens
        batch: list[_Running] = []
        for entry in running[:max_batch_size]:
            if spare < 1:
                break
            spare -= 1
            batch.append(entry)
        started: list[_Running] = []
        while waiting and len(running) + len(started) < max_batch_size and len(batch) == len(running):
            request = waiting[-1]
            reserved = ceil_div(request.prompt + request.max_new, tokens_per_block)
            if reserved > free or request.prompt > spare:
                break
            free -= reserved
            spare -= request.prompt
            started.append(_Running(waiting.pop(), reserved))
        running += started
        batch += started
        for entry in batch:
            entry.made += 1
        held = sum([ceil_div(entry.request.prompt + entry.made, tokens_per_block) for entry in running])
        rows.append(StepRow(len(batch), held))
        running = [entry for entry in running if entry.made < entry.request.stops_after_output_tokens]
    return rows
