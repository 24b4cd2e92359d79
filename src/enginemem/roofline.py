"""Floors: what a step or a prompt needs at full memory bandwidth or at the dense peak, and no less.

No latency is predicted here. Launch gaps, communication, sampling, activations and caches are left out on purpose, so a
measured time below a floor disproves the floor's inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from enginemem.architecture import Experts, LayerSpec
from enginemem.memo import per_model
from enginemem.traffic import power
from enginemem.units import Exact


def experts_touched(*, total: int, active: int, batch: int) -> float:
    """Experts of one layer that a batch reads under uniform routing: total (1 - (1 - active/total)^batch)."""
    return total * (1 - power(1 - active / total, batch))


def weight_bytes_read(*, weights: int, expert_bytes: int, experts: Experts | None, batch: int) -> int:
    """Weight bytes of one GPU that a decode step of `batch` requests reads.

    A dense model reads all of `weights`. A mixture of experts reads, of the `expert_bytes` among them, the share that
    the batch touches, rounded down to a byte.
    """
    if experts is None:
        return weights
    touched = experts_touched(total=experts.total, active=experts.active, batch=batch)
    return weights - expert_bytes + int(expert_bytes * touched / experts.total)


def kv_tokens_read(layers: Sequence[LayerSpec], context: Exact) -> Exact:
    """Full-layer tokens' worth of KV that one request reads a step at `context` tokens.

    A windowed layer reads min(window, context); each layer counts by its share of the KV elements of a token.
    """
    by_reach = _elements_by_reach(layers)
    if by_reach.keys() <= {None}:
        return context
    read = [count * (context if reach is None else min(context, reach)) for reach, count in by_reach.items()]
    return Fraction(sum(read)) / sum(by_reach.values())


@per_model
def _elements_by_reach(layers: Sequence[LayerSpec]) -> Mapping[int | None, int]:
    """KV elements of a token by the window or chunk of the layers that hold them; None: the whole context."""
    by_reach: dict[int | None, int] = {}
    for layer in layers:
        reach = (layer.chunk if layer.window is None else layer.window) or None
        by_reach[reach] = by_reach.get(reach, 0) + _elements(layer)
    return by_reach


def _elements(layer: LayerSpec) -> int:
    return layer.layers * layer.kv_heads * (layer.head_size + layer.v_head_size)


def decode_step_seconds(
    *, weight_bytes: int, running: int, context: Exact, kv_bytes_per_token: Exact, bandwidth: int
) -> Fraction:
    """Seconds that one decode step of `running` requests needs on one GPU at full bandwidth (B/s).

    All GPUs of a replica hold the same shard, so the maximum over them is any one of them.
    """
    read = weight_bytes + running * context * kv_bytes_per_token
    if isinstance(read, int):
        return Fraction(read, bandwidth)
    return Fraction(read.numerator, read.denominator * bandwidth)


def prefill_seconds(*, active_parameters: int, prompt: int, tp: int, dense_peak: int) -> Fraction:
    """Seconds of matrix arithmetic for one prompt at the dense peak (FLOP/s a GPU): 2 FLOP a parameter and token."""
    return Fraction(2 * active_parameters * prompt, tp * dense_peak)
