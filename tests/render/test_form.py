"""The form is the input table: every field, its default, and steps that the table itself accepts."""

from __future__ import annotations

import re

import pytest

from enginemem.inputs import Input
from enginemem.render.form import field_id, form, steps
from enginemem.scenario import PLAN_INPUTS


def test_every_input_has_a_control_a_label_and_a_reset() -> None:
    html = form({})
    for field in PLAN_INPUTS:
        own = field_id(field.key)
        assert html.count(f'id="{own}"') == 1
        assert html.count(f'for="{own}"') >= 1
        assert f'data-reset="{field.key}"' in html
        assert f'id="{own}-help"' in html


def test_ids_are_unique() -> None:
    ids = re.findall(r' id="([^"]+)"', form({}))
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("field", list(PLAN_INPUTS), ids=lambda field: field.key)
def test_arrow_keys_walk_through_allowed_values_in_order(field: Input) -> None:
    values = [field.parse(text) for text in steps(field)]
    assert values == sorted(values)  # type: ignore[type-var]
    assert len(set(values)) == len(values)


def test_what_auto_stands_for_is_text_not_markup() -> None:
    html = form({"auto.cuda_total": "<b>"})
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
