"""KV elements and bytes of layers that the vectors do not hold: pipelines, windows, unequal heads, graph lists."""

from __future__ import annotations

from enginemem.architecture import LayerSpec
from enginemem.engines.tensorrt_llm.dispatch import filtered_sizes
from enginemem.engines.tensorrt_llm.layout import (
    element_bytes,
    estimate_elements,
    layout_problem,
    pool_elements,
    printed_bytes,
    recurrent_state_bytes,
)

FULL = LayerSpec("full", 10, 8, 128, 128)
SLIDING = LayerSpec("sliding", 10, 8, 128, 128, window=128)
RECURRENT = LayerSpec("recurrent", 6, 0, 0, 0, states=((64, 3), (8, 4, 16)))


def test_sliding_layers_are_charged_at_full_length() -> None:
    assert pool_elements((FULL, SLIDING), tp=1) == 20 * 2 * 8 * 128


def test_the_pipeline_rank_with_most_layers_decides() -> None:
    # 21 layers on 4 ranks: 6, 5, 5, 5.
    odd = (LayerSpec("full", 21, 8, 128, 128),)
    assert pool_elements(odd, tp=1, pp=4) == 6 * 2 * 8 * 128
    # Ranks of 8, 8 layers: the second holds 2 attention layers and 6 recurrent ones.
    assert pool_elements((FULL, RECURRENT), tp=1, pp=2) == 8 * 2 * 8 * 128


def test_estimate_floors_where_the_pool_rounds_up() -> None:
    three = (LayerSpec("full", 2, 3, 64, 64),)
    assert estimate_elements(three, tp=2) == 2 * 2 * (64 * 3 // 2)
    assert pool_elements(three, tp=2) == 2 * 2 * 2 * 64
    assert estimate_elements(three, tp=2, attention_dp=True) == pool_elements(three, tp=2, attention_dp=True)


def test_unequal_head_counts_are_averaged_in_the_estimate() -> None:
    mixed = (LayerSpec("full", 3, 8, 128, 128), LayerSpec("full", 1, 4, 128, 128))
    assert estimate_elements(mixed, tp=1) == 2 * 4 * 128 * 7
    assert pool_elements(mixed, tp=1) == 2 * 128 * (3 * 8 + 4)


def test_recurrent_layers_store_states_instead_of_tokens() -> None:
    assert pool_elements((FULL, RECURRENT), tp=1) == pool_elements((FULL,), tp=1)
    assert recurrent_state_bytes((FULL, RECURRENT), tp=2, slots=10, state_bytes=2) == 6 * 10 * (32 * 3 + 4 * 64) * 2


def test_layers_of_different_widths_are_named_as_a_problem() -> None:
    assert layout_problem((FULL, SLIDING)) is None
    assert layout_problem((FULL, LayerSpec("full", 1, 8, 64, 64))) is not None
    assert layout_problem((LayerSpec("full", 1, 8, 192, 128),)) is not None
    assert layout_problem((RECURRENT,)) is not None


def test_nvfp4_counts_a_scale_byte_for_sixteen_elements_and_the_log_half_of_it() -> None:
    assert element_bytes(65_536, bits=4, elements_a_scale=16) == 32_768 + 4_096
    assert printed_bytes(65_536, bits=4, elements_a_scale=16) == 32_768 + 2_048


def test_padding_replaces_a_size_that_is_too_large_by_the_limit() -> None:
    assert filtered_sizes((1, 2, 4, 8, 16), limit=10, padding=True) == (1, 2, 4, 8, 10)
    assert filtered_sizes((1, 2, 4, 8, 16), limit=8, padding=True) == (1, 2, 4, 8)
    assert filtered_sizes((1, 2, 4, 8, 16), limit=10, padding=False) == (1, 2, 4, 8)
