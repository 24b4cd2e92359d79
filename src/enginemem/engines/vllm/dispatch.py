"""CUDA graphs: which batch sizes are captured, and whether a batch replays one.

Source rules: `VllmConfig._set_cudagraph_sizes` in `vllm/config/vllm.py` and `CudaGraphManager` in
`vllm/v1/worker/gpu/cudagraph_utils.py` at 0.32.0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from enginemem.derivation import Operand
from enginemem.engines.vllm.resolve import Setup
from enginemem.engines.vllm.run import Run
from enginemem.release import EngineRelease
from enginemem.units import requests


def _grid(top: int, *, small: Sequence[int], fine: int, coarse_start: int, coarse: int) -> list[int]:
    """Small sizes, then multiples of `fine` below `coarse_start`, then steps of `coarse`, all up to `top`."""
    sizes = [size for size in small if size <= top]
    sizes += range(fine, min(top + 1, coarse_start), fine)
    sizes += range(coarse_start, top + 1, coarse)
    return sizes


def capture_sizes(
    request_cap: int,
    step_tokens: int,
    *,
    ceiling: int,
    factor: int,
    small: Sequence[int],
    fine: int,
    coarse_start: int,
    coarse: int,
    preset: int | None = None,
    query_tokens: int = 1,
) -> tuple[int, ...]:
    """The captured batch sizes in tokens, ascending.

    `ceiling` is the platform's largest default size, `factor` bounds it by the request cap, `query_tokens` is the
    tokens a request decodes in one step (1 plus speculative tokens). With a `preset` largest size, as gpt-oss sets it,
    the decode sizes are not added. An off-stride request cap gets a size of its own.
    """
    before = min(factor * query_tokens * request_cap, ceiling) if preset is None else preset
    top = min(before, step_tokens)
    sizes = set(_grid(top, small=small, fine=fine, coarse_start=coarse_start, coarse=coarse))
    if step_tokens <= top:
        sizes.add(step_tokens)
    if preset is None:
        if query_tokens == 1:
            decode = [request_cap]
        else:
            most = min(request_cap, ceiling)
            counts = _grid(most, small=small, fine=fine, coarse_start=coarse_start, coarse=coarse)
            decode = [query_tokens * count for count in (*counts, most)]
        sizes.update([size for size in decode if size <= before and size <= step_tokens])
    return tuple(sorted(sizes))


def graph_ceiling(release: EngineRelease, *, family: int) -> int:
    """The platform's largest default size, tokens, for a major compute capability."""
    blackwell = family == release.integer("graph_ceiling_family")
    return release.integer("graph_ceiling_family_10" if blackwell else "graph_ceiling")


def graph_preset(release: EngineRelease, *, class_name: str) -> int | None:
    """The largest size that a model class sets itself, tokens, or None."""
    for row in release.tables["graph_presets"]:
        if row["architecture"] == class_name:
            preset: int = row["ceiling"]
            return preset
    return None


def decode_capture_sizes(
    release: EngineRelease,
    *,
    family: int,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    class_name: str = "",
    num_speculative_tokens: int = 0,
) -> tuple[int, ...]:
    """The captured sizes of a configuration, with the release's constants."""
    return capture_sizes(
        max_num_seqs,
        max_num_batched_tokens,
        ceiling=graph_ceiling(release, family=family),
        factor=release.integer("graph_requests_factor"),
        small=release.integers("graph_small_sizes"),
        fine=release.integer("graph_fine_step"),
        coarse_start=release.integer("graph_coarse_start"),
        coarse=release.integer("graph_coarse_step"),
        preset=graph_preset(release, class_name=class_name),
        query_tokens=1 + num_speculative_tokens,
    )


def record_dispatch(run: Run, setup: Setup, *, running: int) -> None:
    """Record the captured sizes and whether a pure decode step of `running` requests replays a graph."""
    scenario, release, steps, plan = run
    family = (scenario.gpu.compute_capability or (0, 0))[0]
    class_name = scenario.model.class_name
    sizes = decode_capture_sizes(
        release,
        family=family,
        max_num_seqs=setup.request_cap,
        max_num_batched_tokens=setup.step_tokens,
        class_name=class_name,
    )
    operands: dict[str, Operand] = {
        "request_cap": (setup.request_cap, "requests"),
        "step_tokens": (setup.step_tokens, "tokens"),
        "ceiling": (graph_ceiling(release, family=family), "tokens"),
        "factor": (release.integer("graph_requests_factor"), ""),
        "small": (release.integers("graph_small_sizes"), "tokens"),
        "fine": (release.integer("graph_fine_step"), "tokens"),
        "coarse_start": (release.integer("graph_coarse_start"), "tokens"),
        "coarse": (release.integer("graph_coarse_step"), "tokens"),
        "preset": (graph_preset(release, class_name=class_name), "tokens"),
    }
    steps.add(
        "dispatch.capture_sizes",
        "Captured batch sizes",
        "capture_sizes(request_cap, step_tokens, ceiling=ceiling, factor=factor, small=small, fine=fine, "
        "coarse_start=coarse_start, coarse=coarse, preset=preset)",
        sizes,
        "tokens",
        operands,
        "graph_sizes",
    )
    largest = sizes[-1]
    steps.add(
        "dispatch.largest_graph",
        "Largest graph",
        "max(sizes)",
        largest,
        "tokens",
        {"sizes": (sizes, "tokens")},
        "graph_sizes",
    )
    inside, note = running <= largest, graph_note(sizes, running=running, request_cap=setup.request_cap)
    steps.add(
        "dispatch.in_graph",
        "Decode step replays a graph",
        "running <= largest",
        inside,
        "",
        {"running": (running, "requests"), "largest": (largest, "tokens")},
        "graph_dispatch",
        note=note,
    )
    plan.largest_decode_graph, plan.in_graph, plan.graph_note = largest, inside, note


def graph_note(sizes: Sequence[int], *, running: int, request_cap: int) -> str:
    """One sentence: what a pure decode step of `running` requests replays, and a step that carries a prefill."""
    largest = sizes[-1]
    prefill = f"a step that carries a prefill chunk replays a piecewise graph up to {largest:,} tokens and none above"
    if running > largest:
        return f"A decode step of {requests(running)} runs compiled code without replay; {prefill}."
    size = sizes[bisect_left(sizes, running)]
    # Full graphs reach the request cap; piecewise graphs exist for every size.
    kind = "full" if size <= request_cap else "piecewise"
    how = f"replays a {kind} graph of its own size" if size == running else f"is padded to the {kind} graph of {size:,}"
    return f"A decode step of {requests(running)} {how}; {prefill}."
