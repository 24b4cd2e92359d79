from fractions import Fraction

import pytest

from enginemem.architecture import Experts, LayerSpec
from enginemem.roofline import decode_step_seconds, experts_touched, kv_tokens_read, prefill_seconds, weight_bytes_read

FULL = LayerSpec("full", 8, 4, 64, 64)
SLIDING = LayerSpec("sliding", 24, 4, 64, 64, window=1000)


def test_the_published_floors() -> None:
    weights = 8_030_261_248 * 2
    step = decode_step_seconds(
        weight_bytes=weights, running=209, context=2150, kv_bytes_per_token=131_072, bandwidth=3_350_000_000_000
    )
    assert step == Fraction(73200904, 3271484375)
    prefill = prefill_seconds(active_parameters=8_030_261_248, prompt=2000, tp=1, dense_peak=989_400_000_000_000)
    assert prefill == Fraction(2 * 8_030_261_248 * 2000, 989_400_000_000_000)


def test_tp_divides_the_prefill_floor() -> None:
    whole = prefill_seconds(active_parameters=10**9, prompt=1000, tp=1, dense_peak=10**15)
    assert prefill_seconds(active_parameters=10**9, prompt=1000, tp=4, dense_peak=10**15) == whole / 4


def test_a_window_reads_no_more_than_itself() -> None:
    assert kv_tokens_read([FULL], 2150) == 2150
    assert kv_tokens_read([FULL, SLIDING], 500) == 500
    assert kv_tokens_read([FULL, SLIDING], 4000) == Fraction(1, 4) * 4000 + Fraction(3, 4) * 1000


def test_a_batch_touches_experts_as_uniform_routing_says() -> None:
    assert experts_touched(total=128, active=8, batch=1) == pytest.approx(8)
    assert experts_touched(total=128, active=8, batch=2) == pytest.approx(8 + 8 * 120 / 128)
    assert experts_touched(total=128, active=8, batch=4096) == pytest.approx(128)


def test_a_mixture_reads_only_the_experts_that_the_batch_touches() -> None:
    experts = Experts(total=8, active=2, layers=1, parameters_each=100)
    assert weight_bytes_read(weights=2000, expert_bytes=1600, experts=experts, batch=1) == 400 + 400
    assert weight_bytes_read(weights=2000, expert_bytes=1600, experts=None, batch=1) == 2000
