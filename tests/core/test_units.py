from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginemem.units import (
    ceil_div,
    decimal_text,
    gb,
    gib,
    parse_count,
    parse_decimal,
    parse_quantity,
    quantity_text,
    requests,
    round_half_up,
    round_up,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3GB", 3 * 10**9),
        ("3 gb", 3 * 10**9),
        ("0.5GiB", 2**29),
        ("81,559 MiB", 81559 * 2**20),
        ("1e3 MB", 10**9),
        ("79.18 GiB", Fraction(2125471940608, 25)),
        ("12B", 12),
    ],
)
def test_quantities_are_exact(text: str, value: Fraction | int) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["3", "GB", "3 XB", "", "nan GB", "1/3 GB", "3GB;4GB", "--3GB", "3GB\n4GB", "1e999GB", "٣GB"]
)
def test_a_quantity_without_a_plain_number_and_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|unit"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2000", 2000), ("32k", 32000), ("32Ki", 32768), ("1e5", 100000), ("1.5k", 1500), ("2,000", 2000)],
)
def test_counts_know_k_and_ki(text: str, value: int) -> None:
    assert parse_count(text) == value


@pytest.mark.parametrize("text", ["2.5", "nan", "inf", "", "k", "1e-3", "0x10", "10GB", "٣k٣", "٢٠٠٠", "２０００"])
def test_a_count_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        parse_count(text)


def test_decimals_are_exact() -> None:
    assert parse_decimal("0.92") == Fraction(23, 25)
    with pytest.raises(ValueError, match="decimal"):
        parse_decimal("92%")


@given(st.integers(min_value=0, max_value=10**13))
def test_quantity_text_round_trips_bytes(value: int) -> None:
    assert parse_quantity(quantity_text(value)) == value


@given(st.decimals(min_value=0, max_value=10**4, places=6), st.sampled_from(["GB", "GiB", "MiB"]))
def test_quantity_text_round_trips_what_people_type(number: object, unit: str) -> None:
    value = parse_quantity(f"{number:f}{unit}")
    assert parse_quantity(quantity_text(value)) == value


def test_rounding_is_half_up_and_units_are_not_mixed() -> None:
    assert round_half_up(Fraction(5, 2)) == "3"
    assert round_half_up(Fraction(-5, 2)) == "-3"
    assert round_half_up(Fraction(1234567, 1000), 2) == "1,234.57"
    assert gb(59156844919) == "59.16 GB"
    assert gib(59362519615) == "55.29 GiB"


def test_decimal_text_is_finite_or_nothing() -> None:
    assert decimal_text(Fraction(23, 25)) == "0.92"
    assert decimal_text(Fraction(1, 3)) is None
    assert decimal_text(-3) == "-3"


def test_integer_helpers() -> None:
    assert (ceil_div(7, 2), ceil_div(8, 2), round_up(7, 4), round_up(8, 4)) == (4, 4, 8, 8)


@pytest.mark.parametrize(("count", "text"), [(0, "0 requests"), (1, "1 request"), (1024, "1,024 requests")])
def test_requests_in_words(count: int, text: str) -> None:
    assert requests(count) == text
