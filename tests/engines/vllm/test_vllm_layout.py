"""Rules of pages and groups that the vectors do not name."""

from __future__ import annotations

import pytest

from enginemem.architecture import LayerSpec, load_model
from enginemem.derivation import NotModeled
from enginemem.engines.vllm.layout import (
    KvRow,
    PagesCannotBeUnifiedError,
    kv_groups,
    page_bytes,
    token_bytes,
)
from enginemem.engines.vllm.pool import KvPool, KvShortage, size_kv_cache
from enginemem.engines.vllm.rows import model_rows

FULL = KvRow("full", 16, n=4, kv_heads=8, head_size=128)
SLIDING = KvRow("sliding", 16, n=8, kv_heads=8, head_size=128, window=1024)


def test_nvfp4_token_is_half_a_byte_a_value_and_a_scale_for_sixteen() -> None:
    # K and V of 8 heads: 2 * 8 * (64 + 8) bytes.
    assert token_bytes(KvRow("full", 16, kv_heads=8, head_size=128, dtype="nvfp4")) == 2 * 8 * (64 + 8)


def test_hybrid_manager_off_sizes_windows_as_full_attention() -> None:
    (group,) = kv_groups([[FULL, SLIDING]], hybrid_manager=False)
    assert group.kind == "full_attention"
    assert group.layer_bytes == (12 * page_bytes(FULL),)


def test_window_beside_a_latent_cache_falls_back_to_full_attention() -> None:
    latent = KvRow("mla", 16, n=4, head_size=576)
    (group,) = kv_groups([[latent, SLIDING]])
    assert group.layer_bytes == (4 * page_bytes(latent) + 8 * page_bytes(SLIDING),)


def test_states_beside_a_latent_page_that_does_not_divide_are_refused() -> None:
    state = KvRow("mamba", 16, shapes=((7, 1000),), dtypes=("fp32",))
    latent = KvRow("mla", 16, head_size=576)
    with pytest.raises(PagesCannotBeUnifiedError):
        kv_groups([[state, latent]])
    got = size_kv_cache(ranks=[[state, latent]], available_bytes=10**9, max_model_len=100, in_flight=100)
    assert got == KvShortage("page_sizes")


def test_context_parallel_windows_are_refused() -> None:
    got = size_kv_cache(
        ranks=[[SLIDING]], available_bytes=10**9, max_model_len=100, in_flight=100, decode_context_parallel=2
    )
    assert got == KvShortage("dcp_with_sliding_window")


def test_override_counts_blocks_beyond_the_memory() -> None:
    got = size_kv_cache(
        ranks=[[FULL]], available_bytes=-1, max_model_len=160, in_flight=100, num_gpu_blocks_override=11
    )
    assert isinstance(got, KvPool)
    assert (got.num_blocks, got.kv_tokens_logged, got.max_concurrency) == (11, 176, 1.1)


def test_automatic_length_that_fits_nothing_is_an_error_of_its_own() -> None:
    got = size_kv_cache(ranks=[[FULL]], available_bytes=0, max_model_len=160, in_flight=100, auto_max_model_len=True)
    assert got == KvShortage("cannot_auto_fit")


def test_latent_rows_are_never_split_over_gpus() -> None:
    layer = LayerSpec("mla", 2, 128, 576, 0)
    rows = model_rows(load_model("llama-3.1-8b")._replace(layers=(layer,)), tp=8, dtype="bf16", block_size=16)
    assert isinstance(rows, list)
    assert token_bytes(rows[0]) == 1152


def test_recurrent_layers_are_not_modeled_yet() -> None:
    layer = LayerSpec("recurrent", 2, 0, 0, 0, states=((1, 2),))
    model = load_model("llama-3.1-8b")._replace(layers=(layer,))
    assert isinstance(model_rows(model, tp=1, dtype="bf16", block_size=16), NotModeled)
