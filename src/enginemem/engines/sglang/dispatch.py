"""CUDA graph sizes, and whether a batch replays one."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from enginemem.release import EngineRelease, load_release
from enginemem.units import requests


@lru_cache(maxsize=16)
def _ranges(release: str, table: str) -> tuple[int, ...]:
    flat: list[int] = []
    for row in load_release("sglang", release).tables[table]:
        flat += (row["first"], row["last"] or 0, row["step"])
    return tuple(flat)


def graph_ranges(release: EngineRelease, table: str) -> tuple[int, ...]:
    """The rows of a range table as one flat tuple of (first, last, step); 0 stands for a range without an end."""
    return _ranges(release.release, table)


@lru_cache(maxsize=64)
def graph_sizes(head: tuple[int, ...], ranges: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """Sizes of a capture list up to `limit`: those of `head`, then the ranges of the flat `ranges`, ends included."""
    sizes = [size for size in head if size <= limit]
    for first, last, step in zip(ranges[0::3], ranges[1::3], ranges[2::3], strict=True):
        if first > limit:
            break
        sizes.extend(range(first, min(limit, last or limit) + 1, step))
    return tuple(sizes)


def with_limit(sizes: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """`sizes` with `limit` appended where it is missing."""
    return sizes if sizes and sizes[-1] == limit else (*sizes, limit)


def decode_graph_sizes(
    release: EngineRelease, limit: int, *, speculative: bool = False, padding: bool = True
) -> tuple[int, ...]:
    """Decode batch sizes that are captured for a largest batch of `limit` requests, ascending, `limit` included.

    Source rule: arg_groups/cuda_graph_hook.py generate_decode_cuda_graph_batch_sizes.
    """
    if not padding:
        return tuple(range(1, limit + 1))
    suffix = "_speculative" if speculative else ""
    ranges = graph_ranges(release, f"decode_graph_ranges{suffix}")
    return with_limit(graph_sizes(release.integers(f"decode_graph_head{suffix}"), ranges, limit), limit)


def prefill_graph_sizes(release: EngineRelease, limit: int) -> tuple[int, ...]:
    """Prefill sizes in tokens that are captured up to `limit`, ascending; none for a limit of 0 or less.

    Source rule: arg_groups/cuda_graph_hook.py generate_prefill_cuda_graph_batch_sizes.
    """
    return graph_sizes((), graph_ranges(release, "prefill_graph_ranges"), limit)


class DecodeGraphs(NamedTuple):
    """The largest captured decode batch and the batch sizes that replay it exactly or padded: all up to `largest`."""

    largest: int
    replayed: int | None


def captured_decode_graphs(
    largest: int, *, request_cap: int, running: int, sizes: tuple[int, ...] | None = None, alignment: int = 1
) -> DecodeGraphs:
    """What is really captured: sizes above the request table fall away and the table's own (aligned) size comes in.

    `replayed` is the size that a batch of `running` requests is padded to, None when it runs eagerly. Source rules:
    model_executor/runner/base_cuda_graph_runner.py get_batch_sizes_to_capture, decode_cuda_graph_runner.py
    can_run_graph.
    """
    table = -(-request_cap // alignment) * alignment
    top = min(largest, table)
    if running > top:
        return DecodeGraphs(top, None)
    if sizes is None:
        return DecodeGraphs(top, running)
    for size in sizes:
        if running <= size <= top and size % alignment == 0:
            return DecodeGraphs(top, size)
    return DecodeGraphs(top, top)


def graph_note(graphs: DecodeGraphs, *, running: int, prefill_graphs: bool, prefill_largest: int) -> str:
    """One sentence: how the decode step of `running` requests runs, and what happens to a prefill."""
    if graphs.replayed is None:
        decode = f"A decode step of {requests(running)} runs eager, above the largest graph of {graphs.largest:,}"
    elif graphs.replayed == running:
        decode = f"A decode step of {requests(running)} replays the graph of its own size"
    else:
        decode = f"A decode step of {requests(running)} is padded to the graph of {graphs.replayed:,}"
    if not prefill_graphs:
        return f"{decode}; prefills are steps of their own and run eager."
    return (
        f"{decode}; prefills are steps of their own, with breakable graphs up to {prefill_largest:,} tokens"
        " (attention runs between the captured parts)."
    )
