"""CUDA graphs: which batch sizes are captured and which step replays one. Everything else runs eager."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from enginemem.derivation import Derivation
from enginemem.engines.plan import EnginePlan, Resolved
from enginemem.engines.tensorrt_llm.resolve import Configuration
from enginemem.release import EngineRelease
from enginemem.units import requests


def capture_sizes(base: Sequence[int], *, largest: int) -> tuple[int, ...]:
    """Generated sizes up to `largest`: the base list, then powers of two above it, then `largest` itself.

    Source rule: llm_args.py, CudaGraphConfig.
    """
    sizes = [size for size in base if size <= largest]
    double = 2 * base[-1]
    while double <= largest:
        sizes.append(double)
        double *= 2
    if not sizes or sizes[-1] != largest:
        sizes.append(largest)
    return tuple(sizes)


def filtered_sizes(sizes: Sequence[int], *, limit: int, padding: bool) -> tuple[int, ...]:
    """The sizes that can occur: none above `limit`, the largest pure decode batch.

    With padding a size that is dropped is replaced by the limit, because who accepts padding to more accepts padding
    to less. Source rule: model_engine.py, _filter_cuda_graph_batch_sizes.
    """
    kept = [size for size in sizes if size <= limit]
    if padding and len(kept) < len(sizes) and limit >= 1 and (not kept or kept[-1] != limit):
        kept.append(limit)
    return tuple(kept)


def decode_capture_sizes(
    base: Sequence[int], *, largest: int, max_batch_size: int, max_num_tokens: int, draft_tokens: int, padding: bool
) -> tuple[int, ...]:
    """Captured decode batch sizes of a generated list; `draft_tokens` are those of one request."""
    limit = min(max_batch_size, max_num_tokens // (1 + draft_tokens))
    return filtered_sizes(capture_sizes(base, largest=largest), limit=limit, padding=padding)


def graph_size(batch: int, *, sizes: Sequence[int], padding: bool, has_context_request: bool) -> int | None:
    """The captured size that a step of `batch` requests replays, None when it runs eager.

    Source rule: cuda_graph_runner.py, CUDAGraphRunner.
    """
    place = bisect_left(sizes, batch)
    if has_context_request or place == len(sizes):
        return None
    return sizes[place] if padding or sizes[place] == batch else None


def base_sizes(release: EngineRelease, *, padding: bool) -> tuple[int, ...]:
    """The sizes that every generated list starts from."""
    return release.integers("cuda_graph_padded_sizes" if padding else "cuda_graph_sizes")


def note(batch: int, *, sizes: Sequence[int], size: int | None) -> str:
    """One sentence: what a pure decode step of `batch` requests does, and a step that carries a prefill."""
    if size is not None:
        how = f"replays the graph of {size:,}" if size == batch else f"is padded to the graph of {size:,}"
        return f"A pure decode step of {requests(batch)} {how}; a step that carries a prefill runs eager."
    if not sizes:
        return "No decode graph is captured: every step runs eager."
    place = bisect_left(sizes, batch)
    if place == len(sizes):
        why = f"is above the largest captured size, {sizes[-1]:,}"
    elif place == 0:
        why = f"is below the smallest captured size, {sizes[0]:,}, and padding is off"
    else:
        why = f"lies between the captured sizes {sizes[place - 1]:,} and {sizes[place]:,}, and padding is off"
    return f"A batch of {batch:,} {why}: a pure decode step runs eager, and so does a step that carries a prefill."


def record(config: Configuration, release: EngineRelease, plan: EnginePlan, derivation: Derivation) -> tuple[int, ...]:
    """The captured sizes with their steps; sets `plan.largest_decode_graph` (0 when nothing is captured)."""
    padding = config.graph_padding
    asked = config.graph_sizes
    limit = min(config.max_batch_size, config.max_num_tokens)
    derivation.add(
        "dispatch.limit",
        "Largest pure decode batch",
        "min(max_batch_size, max_num_tokens)",
        limit,
        "requests",
        {
            "max_batch_size": (config.max_batch_size, "requests"),
            "max_num_tokens": (config.max_num_tokens, "tokens"),
        },
        "graph_filter",
        role="limit",
    )
    largest = release.integer("cuda_graph_max_batch_size")
    base = base_sizes(release, padding=padding) if asked is None else asked
    sizes = filtered_sizes(
        capture_sizes(base, largest=largest) if asked is None else asked, limit=limit, padding=padding
    )
    generated = "capture_sizes(base, largest=largest)"
    derivation.add(
        "dispatch.sizes",
        "Captured decode batch sizes",
        f"filtered_sizes({generated if asked is None else 'base'}, limit=limit, padding=padding)",
        sizes,
        "requests",
        {
            "base": (base, "requests"),
            **({"largest": (largest, "requests")} if asked is None else {}),
            "limit": (limit, "requests"),
            "padding": (padding, ""),
        },
        "cuda_graph_config",
        "graph_filter",
    )
    plan.resolved["cuda_graph_batch_sizes"] = Resolved(sizes, "derived" if asked is None else "user")
    plan.largest_decode_graph = sizes[-1] if sizes else 0
    return sizes


def record_use(
    config: Configuration, plan: EnginePlan, derivation: Derivation, *, sizes: tuple[int, ...], running: int
) -> None:
    """Whether a pure decode step at `running` requests replays a graph; sets the plan's two fields."""
    padding = config.graph_padding
    size = graph_size(running, sizes=sizes, padding=padding, has_context_request=False)
    plan.in_graph = size is not None
    plan.graph_note = note(running, sizes=sizes, size=size)
    derivation.add(
        "dispatch.graph",
        "Graph of a pure decode step",
        "graph_size(running, sizes=sizes, padding=padding, has_context_request=False)",
        size,
        "requests",
        {"running": (running, "requests"), "sizes": (sizes, "requests"), "padding": (padding, "")},
        "graph_runner",
        note=plan.graph_note,
    )
