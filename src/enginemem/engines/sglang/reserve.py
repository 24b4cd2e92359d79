"""The memory that SGLang holds back for everything but weights and KV pool, and the fraction that follows from it."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.engines.sglang.model import Vision
from enginemem.release import EngineRelease


class CapacityDefaults(NamedTuple):
    """Defaults that follow from the GPU's capacity: chunk in tokens, largest decode graph in requests."""

    chunked_prefill_size: int
    decode_graph: int


def capacity_defaults(release: EngineRelease, mib: float | None, *, tp: int) -> CapacityDefaults:
    """Defaults for a GPU of `mib` MiB (lower bounds inclusive); None where no capacity can be read.

    Source rule: arg_groups/memory_hook.py handle_gpu_memory_settings.
    """
    if mib is None:
        return CapacityDefaults(
            release.integer("unknown_chunked_prefill_size"), release.integer("unknown_decode_graph")
        )
    column = "decode_graph_large_tp" if tp >= release.integer("large_tp") else "decode_graph"
    for row in release.tables["capacity_classes"]:
        if row["below_mib"] is None or mib < row["below_mib"]:
            return CapacityDefaults(row["chunked_prefill_size"], row[column])
    raise LookupError("the last capacity class has no bound")


def activation_tokens(
    release: EngineRelease,
    *,
    role: str,
    chunk: int,
    max_prefill_tokens: int,
    decode_requests: int,
    draft_tokens: int,
) -> int:
    """Tokens that the activation memory is reserved for: the largest pass of the server's role."""
    prefill = chunk if chunk > 0 else max_prefill_tokens
    tokens = decode_requests * draft_tokens if role == "decode" else prefill
    return max(tokens, release.integer("activation_minimum"))


class GraphReserve(NamedTuple):
    """MiB reserved for graphs: decode graphs, their attention-DP surplus, and prefill graphs."""

    decode: float
    attention_dp: float
    prefill: float

    @property
    def total(self) -> float:
        """All of it, MiB."""
        return self.decode + self.attention_dp + self.prefill


def graph_reserve(
    release: EngineRelease,
    *,
    role: str,
    decode_graphs: bool,
    decode_max: int,
    attention_dp: int,
    prefill_graphs: bool,
    breakable: bool,
    prefill_count: int,
    mla: bool,
    deepep: bool,
) -> GraphReserve:
    """MiB held back for CUDA graphs (arg_groups/memory_hook.py reserve_for_graph_mb)."""
    decode = surplus = prefill = 0.0
    if role != "prefill":
        if decode_graphs:
            decode = decode_max * release.integer("decode_graph_mib")
        if attention_dp > 1:
            surplus = decode_max * attention_dp * release.integer("attention_dp_graph_mib")
            if decode_max > release.integer("attention_dp_large_above"):
                surplus += decode_max * attention_dp * release.number("attention_dp_large_mib")
    if role != "decode" and prefill_graphs:
        prefill = (
            release.integer("prefill_graph_mla_mib") if mla else prefill_count * release.integer("prefill_graph_mib")
        )
        if breakable and deepep:
            prefill += release.integer("prefill_graph_deepep_mib")
    return GraphReserve(decode, surplus, prefill)


class Reserve(NamedTuple):
    """The reserve in MiB and its parts; `floored` says whether the floor for large GPUs decided."""

    base: int
    activation: float
    parallel: float
    graphs: GraphReserve
    floored: bool
    deepep: int
    total: float


def reserve(
    release: EngineRelease, *, mib: float | None, activation: int, gpus: int, graphs: GraphReserve, deepep: bool
) -> Reserve:
    """The whole reserve for a GPU of `mib` MiB in a server of `gpus` GPUs (tp times pp), in the engine's order."""
    base = release.integer("reserve_base_mib")
    active = activation * release.number("activation_mib_per_token")
    parallel = gpus / release.integer("parallel_group") * release.integer("parallel_group_mib")
    total = base + active + parallel + graphs.total
    floor = release.integer("reserve_floor_mib")
    floored = mib is not None and mib > release.integer("reserve_floor_above_mib") and total < floor
    extra = release.integer("deepep_mib") if deepep else 0
    return Reserve(base, active, parallel, graphs, floored, extra, (floor if floored else total) + extra)


def mem_fraction_static(release: EngineRelease, *, mib: float | None, reserve_mib: float) -> float:
    """The default fraction, rounded to three decimals before anything uses it."""
    if mib is None:
        return release.number("fraction_without_capacity")
    return round((mib - reserve_mib) / mib, release.integer("fraction_decimals"))


def vision_size(release: EngineRelease, vision: Vision) -> float:
    """The vision encoder's size as a multiple of the reference encoder's; fields it lacks count as the reference's."""
    base_layers, base_hidden = release.integer("vision_layers"), release.integer("vision_hidden_size")
    layers = base_layers if vision.layers is None else vision.layers
    hidden = base_hidden if vision.hidden_size is None else vision.hidden_size
    return layers * (hidden * hidden) / (base_layers * (base_hidden * base_hidden))


def vision_fraction(release: EngineRelease, fraction: float, vision: Vision | None) -> float:
    """The fraction of a vision-language model, not rounded again (memory_hook.py adjust_mem_fraction_for_vlm)."""
    if vision is None:
        return fraction
    ratio = vision_size(release, vision)
    factor = 1.0 - release.number("vision_sensitivity") * (ratio - 1.0)
    factor = max(release.number("vision_low"), min(release.number("vision_high"), factor))
    return fraction * (release.number("vision_factor") * factor)
