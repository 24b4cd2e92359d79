"""What one token costs: KV elements and bytes per token on one GPU, as the engine estimates and as it stores them.

TensorRT-LLM holds two functions for the same question. The estimate turns the byte budget into tokens; the pool is
allocated with the other. They differ once tensor parallelism exceeds the KV heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from enginemem.architecture import LayerSpec
from enginemem.derivation import Derivation, Operand
from enginemem.memo import per_model
from enginemem.release import EngineRelease
from enginemem.units import Exact, ceil_div

_ATTENTION = ("full", "sliding", "chunked", "mla")


class KvFormat(NamedTuple):
    """A KV element type: bits an element, and how many elements share one scale byte (None: no scales)."""

    bits: int
    elements_a_scale: int | None


def kv_format(release: EngineRelease, dtype: str) -> KvFormat:
    """The KV format `bf16` (any 16-bit type), `fp8` or `nvfp4`; raises KeyError for another name.

    FP8 KV has no scales per token, so it is exactly half of 16 bits.
    """
    for row in release.tables["kv_formats"]:
        if row["dtype"] == dtype:
            return KvFormat(row["bits"], row["elements_a_scale"])
    raise KeyError(dtype)


@per_model
def layout_problem(specs: Sequence[LayerSpec]) -> str | None:
    """Why the engine's single-width cache cannot be described for these layers, or None."""
    attention = [spec for spec in specs if spec.kind in _ATTENTION]
    if any(spec.kind == "compressed" for spec in specs):
        return (
            "its windows, its rows for several tokens, their index keys and the compressors' states: the source of "
            "release 1.2.1 is not at hand, so whether it has the class, and in which pools, is not known here"
        )
    if not attention:
        return "the model has no attention layer"
    if any(spec.index_head for spec in attention):
        return "the cache of a sparse indexer's keys follows rules of release 1.2.1 that are not known here"
    mixers = {spec.recurrent.mixer for spec in specs if spec.recurrent is not None} - {"mamba2", "gdn"}
    if mixers:
        return f"recurrent layers of type {', '.join(sorted(mixers))}: release 1.2.1 is not known to keep their states"
    if len({(spec.head_size, spec.kind == "mla") for spec in attention}) > 1:
        return "its attention layers have different head widths; release 1.2.1 sizes the cache with one"
    if any(spec.kind != "mla" and spec.v_head_size != spec.head_size for spec in attention):
        return "its K and V heads have different widths; release 1.2.1 sizes the cache with one"
    return None


def _ranks(specs: Sequence[LayerSpec], pp: int) -> list[list[tuple[LayerSpec, int]]]:
    """Layers of each pipeline rank as (spec, count): the first ranks take one layer more when they do not divide."""
    base, extra = divmod(sum([spec.layers for spec in specs]), pp)
    rest = [(spec, spec.layers) for spec in specs]
    ranks = []
    for rank in range(pp):
        room = base + (rank < extra)
        mine, later = [], []
        for spec, count in rest:
            taken = min(room, count)
            room -= taken
            if taken:
                mine.append((spec, taken))
            if count > taken:
                later.append((spec, count - taken))
        ranks.append(mine)
        rest = later
    return ranks


@per_model
def estimate_elements(specs: Sequence[LayerSpec], *, tp: int, pp: int = 1, attention_dp: bool = False) -> int:
    """KV elements per token in the estimate: the floor of head width times KV heads over tp, a layer.

    Sliding and chunked layers count at full length (no attention window is set by default). A latent row is not split.
    Source rule: resource_manager.py, KVCacheManager.get_cache_size_per_token.
    """
    attention = [spec for spec in specs if spec.kind in _ATTENTION]
    layers = max(ceil_div(sum([spec.layers for spec in attention]), pp), 1)
    first = attention[0]
    if first.kind == "mla":
        return layers * first.head_size
    heads: float = first.kv_heads
    if any(spec.kv_heads != first.kv_heads for spec in attention):
        # A list of head counts is averaged, as a float, over all layers of the list.
        heads = sum([spec.layers * spec.kv_heads for spec in attention]) / sum([spec.layers for spec in attention])
    return int(2 * layers * (first.head_size * heads // (1 if attention_dp else tp)))


@per_model
def pool_elements(specs: Sequence[LayerSpec], *, tp: int, pp: int = 1, attention_dp: bool = False) -> int:
    """KV elements per token in the pool, on the pipeline rank that holds most: KV heads over tp rounded up.

    Source rule: resource_manager.py, KVCacheManager.get_cache_bytes_per_token.
    """
    split = 1 if attention_dp else tp
    if pp == 1:
        return sum([_row(spec, spec.layers, split) for spec in specs])
    return max([sum([_row(spec, count, split) for spec, count in rank]) for rank in _ranks(specs, pp)])


def _row(spec: LayerSpec, count: int, split: int) -> int:
    """Elements that `count` layers store for one token: K and V of the rank's heads, or one latent row."""
    if spec.kind == "mla":
        return count * spec.head_size
    return count * 2 * ceil_div(spec.kv_heads, split) * spec.head_size if spec.kind in _ATTENTION else 0


def element_bytes(elements: int, *, bits: int, elements_a_scale: int | None) -> int:
    """Bytes of `elements` KV elements, data and scales each rounded up to whole bytes."""
    scales = 0 if elements_a_scale is None else ceil_div(elements, elements_a_scale)
    return ceil_div(elements * bits, 8) + scales


def printed_bytes(elements: int, *, bits: int, elements_a_scale: int | None) -> Exact:
    """Bytes that the engine's own log counts for `elements`: it takes scales for elements of the same small type.

    Source rule: kvCacheManager.cpp, allocatePools (a scale pool is multiplied by the 4-bit size too).
    """
    if elements_a_scale is None:
        return ceil_div(elements * bits, 8)
    size = Fraction(elements * bits, 8) + Fraction(elements * bits, 8 * elements_a_scale)
    return size.numerator if size.denominator == 1 else size


@per_model
def recurrent_state_bytes(specs: Sequence[LayerSpec], *, tp: int, slots: int, state_bytes: int) -> int:
    """Bytes of the recurrent layers' states on one GPU: one slot for each request of max_batch_size.

    The first axis of each state shape is split over tp. The states are torch tensors beside the pool, so they lower
    what the pool gets. Source rule: mamba_cache_manager.py.
    """
    total = 0
    for spec in specs:
        for shape in spec.states:
            elements = shape[0] // tp
            for axis in shape[1:]:
                elements *= axis
            total += spec.layers * slots * elements * state_bytes
    return total


def record(specs: Sequence[LayerSpec], derivation: Derivation, *, tp: int) -> None:
    """The steps of the elements per token, stored and estimated, for attention layers of the same heads."""
    attention = [spec for spec in specs if spec.kind in _ATTENTION]
    spec, layers = attention[0], sum([other.layers for other in attention])
    if any(other.kv_heads != spec.kv_heads for other in attention):
        return
    sizes: dict[str, Operand] = {"layers": (layers, "layers"), "head_dim": (spec.head_size, "elements")}
    stored, estimated = "layers * head_dim", "layers * head_dim"
    if spec.kind != "mla":
        sizes |= {"kv_heads": (spec.kv_heads, "heads"), "tp": (tp, "GPUs")}
        stored, estimated = "2 * layers * ceil_div(kv_heads, tp) * head_dim", "2 * layers * (head_dim * kv_heads // tp)"
    note = None
    if any(other.kind in ("sliding", "chunked") for other in attention):
        note = "Sliding windows count at full length: no attention window is set by default."
    elif len(attention) < len(specs):
        note = "Attention layers only; recurrent states are tensors beside the pool."
    derivation.add(
        "layout.elements",
        "KV elements per token",
        stored,
        pool_elements(specs, tp=tp),
        "elements",
        sizes,
        "kv_bytes",
        note=note,
    )
    derivation.add(
        "layout.estimated_elements",
        "KV elements per token, estimate",
        estimated,
        estimate_elements(specs, tp=tp),
        "elements",
        sizes,
        "kv_estimate",
        note=None if spec.kind == "mla" or tp <= spec.kv_heads else "Too small: tp exceeds the KV heads.",
    )
