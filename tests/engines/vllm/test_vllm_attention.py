"""Which backend serves a KV type on which part, and the parts and types that the engine refuses."""

from __future__ import annotations

import pytest

from enginemem.engines.vllm.attention import attention_backend, default_block_size
from enginemem.engines.vllm.run import StopPlan
from enginemem.release import load_release

RELEASE = load_release("vllm")


def backend(capability: tuple[int, int], kv_dtype: str = "auto", head_size: int = 128, block: int | None = None) -> str:
    return attention_backend(RELEASE, capability=capability, head_size=head_size, kv_dtype=kv_dtype, block_size=block)


@pytest.mark.parametrize(
    ("capability", "kv_dtype", "expected"),
    [
        ((9, 0), "auto", "FLASH_ATTN"),
        ((9, 0), "fp8", "FLASH_ATTN"),
        ((8, 0), "auto", "FLASH_ATTN"),
        ((8, 0), "fp8", "FLASHINFER"),
        ((8, 9), "fp8", "FLASHINFER"),
        ((10, 0), "auto", "FLASHINFER"),
        ((10, 3), "nvfp4", "FLASHINFER"),
        ((9, 0), "nvfp4", "FLASHINFER"),
        ((12, 0), "fp8", "FLASHINFER"),
        ((7, 5), "auto", "TRITON_ATTN"),
    ],
)
def test_first_backend_that_takes_the_cache_wins(capability: tuple[int, int], kv_dtype: str, expected: str) -> None:
    assert backend(capability, kv_dtype) == expected


def test_head_size_64_has_no_nvfp4_cache_before_blackwell() -> None:
    assert backend((10, 0), "nvfp4", 64) == "FLASHINFER"
    with pytest.raises(StopPlan, match="KV cache of type nvfp4 at head size 64"):
        backend((9, 0), "nvfp4", 64)


def test_triton_refuses_fp8_on_turing() -> None:
    with pytest.raises(StopPlan, match=r"compute capability 8\.9"):
        backend((7, 5), "fp8")


@pytest.mark.parametrize("block", [1, 8])
def test_blocks_that_sixteen_does_not_divide_are_refused(block: int) -> None:
    with pytest.raises(StopPlan, match=f"blocks of {block} tokens") as stop:
        backend((9, 0), block=block)
    assert stop.value.status == "refused"


def test_head_sizes_beyond_256_are_not_guessed() -> None:
    with pytest.raises(StopPlan) as stop:
        backend((9, 0), head_size=512)
    assert stop.value.status == "not_modeled"


@pytest.mark.parametrize(
    ("name", "tokens"),
    [("FLASH_ATTN", 16), ("FLASHINFER", 16), ("FLASHMLA", 64), ("FLASHINFER_MLA", 32), ("CUTLASS_MLA", 128)],
)
def test_default_block_follows_the_backend(name: str, tokens: int) -> None:
    assert default_block_size(RELEASE, name) == tokens
