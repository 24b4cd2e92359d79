"""The closed forms of the output moments against sums over the distribution, in exact arithmetic."""

from fractions import Fraction

import pytest

from enginemem.traffic import Shape, marks_reached, output_moments, power


def exact_lengths(shape: Shape, mean: int, limit: int) -> dict[int, Fraction]:
    if shape == "fixed":
        weights = {mean: Fraction(1)}
    elif shape == "uniform":
        weights = {length: Fraction(1, 2 * mean - 1) for length in range(1, 2 * mean)}
    else:
        stay = 1 - Fraction(1, mean)
        weights = {length: stay ** (length - 1) / mean for length in range(1, limit)}
        weights[limit] = stay ** (limit - 1)
    cut: dict[int, Fraction] = {}
    for length, weight in weights.items():
        cut[min(length, limit)] = cut.get(min(length, limit), Fraction(0)) + weight
    return cut


def exact_moments(shape: Shape, mean: int, limit: int) -> tuple[Fraction, Fraction]:
    cut = exact_lengths(shape, mean, limit)
    mean_cut = sum((length * weight for length, weight in cut.items()), Fraction(0))
    pairs = sum((Fraction(length * (length - 1), 2) * weight for length, weight in cut.items()), Fraction(0))
    return mean_cut, pairs


@pytest.mark.parametrize("shape", ["fixed", "uniform", "geometric"])
@pytest.mark.parametrize(("mean", "limit"), [(1, 1), (1, 50), (7, 7), (30, 40), (30, 59), (30, 400), (200, 201)])
def test_moments_equal_the_sum_over_the_distribution(shape: Shape, mean: int, limit: int) -> None:
    expected_mean, expected_pairs = exact_moments(shape, mean, limit)
    moments = output_moments(shape=shape, mean=mean, limit=limit)
    assert moments.mean == pytest.approx(float(expected_mean), rel=1e-12)
    assert moments.pairs == pytest.approx(float(expected_pairs), rel=1e-11, abs=1e-12)


def test_progress_is_length_biased() -> None:
    assert output_moments(shape="fixed", mean=300, limit=2000).progress == 150.5
    assert output_moments(shape="fixed", mean=300, limit=2000).generated == 150.0
    assert output_moments(shape="geometric", mean=300, limit=10**6).progress == pytest.approx(300, rel=1e-9)
    assert output_moments(shape="uniform", mean=750, limit=1500).progress == pytest.approx(2 * 750 / 3, rel=2e-3)


def test_one_token_outputs_generate_nothing_after_the_first() -> None:
    assert output_moments(shape="geometric", mean=1, limit=5).generated == 0


def test_huge_limits_stay_finite() -> None:
    moments = output_moments(shape="geometric", mean=10**8, limit=10**8)
    assert 0.6 * 10**8 < moments.mean < 0.64 * 10**8


def test_power_multiplies() -> None:
    assert power(2.0, 10) == 1024.0
    assert power(0.5, 0) == 1.0


@pytest.mark.parametrize("shape", ["fixed", "uniform", "geometric"])
@pytest.mark.parametrize(("mean", "limit"), [(1, 1), (1, 50), (7, 7), (30, 40), (30, 400), (200, 201), (50, 20)])
@pytest.mark.parametrize(("first", "step"), [(1, 1), (2, 3), (17, 16), (40, 1000), (9, 10)])
def test_marks_reached_equal_the_sum_over_tokens(shape: Shape, mean: int, limit: int, first: int, step: int) -> None:
    lengths = exact_lengths(shape, mean, limit)
    tokens = sum((length * weight for length, weight in lengths.items()), Fraction(0))
    expected = Fraction(0)
    for length, weight in lengths.items():
        for token in range(1, length + 1):
            expected += weight * max(0, (token - first) // step + 1)
    assert marks_reached(shape, mean, limit, first, step) == pytest.approx(
        float(expected / tokens), rel=1e-9, abs=1e-12
    )


def test_marks_of_means_far_above_the_limit_are_those_of_fixed_outputs() -> None:
    marks = marks_reached("geometric", 10**8, 1000, 101, 100)
    assert marks == pytest.approx(marks_reached("fixed", 1000, 1000, 101, 100), rel=1e-4)
    assert 0 <= marks_reached("geometric", 10**8, 10**8, 17, 16) <= 10**8 / 16
