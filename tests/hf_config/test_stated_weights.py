"""Parameter bytes beside every size that a file or a start-up log states: inside of the limit, or a listed miss."""

from fractions import Fraction

import pytest

from enginemem import dataset
from enginemem.stated_weights import StatedWeights, stated_weights

TABLE = stated_weights()


def label(row: StatedWeights) -> str:
    return f"{row.model}, {row.engine or 'checkpoint'}, tp {row.tp}, {row.printed}"


@pytest.mark.parametrize("row", TABLE, ids=label)
def test_a_stated_size_is_met_or_listed_as_a_miss(row: StatedWeights) -> None:
    shown = f"{label(row)}: ours {row.ours:,} bytes, {100 * float(row.difference):+.3f} %"
    if row.reason is None:
        assert row.within, f"{shown}: a miss that data/weights.yaml gives no reason for"
    else:
        assert not row.within, f"{shown}: no miss any more, so data/weights.yaml must not call it one"


def test_the_limits_are_a_thousandth_and_three_hundredths() -> None:
    for row in TABLE:
        assert row.limit == Fraction(3, 100) * row.stated if row.quantised else Fraction(1, 1000) * row.stated


def test_a_log_is_held_against_ours_or_said_to_match_nothing() -> None:
    left = [row["record"] for row in dataset.read("weights.json")["unmatched"]]
    assert len(left) == len(set(left))
    assert not set(left) & {row.record for row in TABLE}


def test_printing_rounds_off_half_a_unit_of_the_last_digit() -> None:
    by_text = {row.printed: row.precision for row in TABLE}
    assert by_text["14.99 GiB"] == Fraction(2**30, 200)
    assert by_text["16,060,522,496 B"] == 0
