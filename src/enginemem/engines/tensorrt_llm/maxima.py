"""The rules turned round: which free memory explains measured maxima of concurrent sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from enginemem.architecture import LayerSpec
from enginemem.engines.tensorrt_llm.budget import granted_bytes
from enginemem.engines.tensorrt_llm.layout import KvFormat, element_bytes, pool_elements
from enginemem.units import ceil_div

SPARE_TOKENS = 1000
"""The published measurements served max_seq_len = input + output + this."""


class MeasuredMaximum(NamedTuple):
    """One measurement: tensor parallel size, input and output length in tokens, memory fraction, sequences."""

    tp: int
    isl: int
    osl: int
    frac: float
    max_concurrent: int


def free_bytes_interval(
    *, running: int, reserved_blocks: int, bytes_per_token: int, tokens_per_block: int, fraction: float
) -> tuple[int, int]:
    """The lowest and highest free bytes at which exactly `running` requests of `reserved_blocks` blocks fit."""
    request = reserved_blocks * tokens_per_block * bytes_per_token
    return _lowest_free(running * request, fraction), _lowest_free((running + 1) * request, fraction) - 1


def explaining_free_bytes(
    rows: Sequence[MeasuredMaximum], specs: Sequence[LayerSpec], *, kv_format: KvFormat, tokens_per_block: int
) -> tuple[int, int] | None:
    """Lowest and highest free bytes that explain every one of `rows`, None when no number does.

    Free bytes are those of one GPU before the fraction is taken; every sequence reserves max_seq_len.
    """
    low, high = 0, None
    for row in rows:
        elements = pool_elements(specs, tp=row.tp)
        least, most = free_bytes_interval(
            running=row.max_concurrent,
            reserved_blocks=ceil_div(row.isl + row.osl + SPARE_TOKENS, tokens_per_block),
            bytes_per_token=element_bytes(elements, bits=kv_format.bits, elements_a_scale=kv_format.elements_a_scale),
            tokens_per_block=tokens_per_block,
            fraction=row.frac,
        )
        low, high = max(low, least), most if high is None else min(high, most)
    return None if high is None or low > high else (low, high)


def _lowest_free(budget: int, fraction: float) -> int:
    """The fewest free bytes whose granted share reaches `budget`; the share grows with the free bytes."""
    low, high = -1, 2 * int(budget / fraction) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if granted_bytes(free=middle, fraction=fraction) >= budget:
            high = middle
        else:
            low = middle
    return high
