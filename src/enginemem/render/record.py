"""The verdict on a pasted GPU record, as the hardware page shows it."""

from __future__ import annotations

from collections.abc import Sequence

from enginemem.inputs import FieldError
from enginemem.render.markup import escape


def record_verdict(name: str | None, like: str | None, link: str | None, errors: Sequence[FieldError]) -> str:
    """Every fault by field, or what the record is planned as and the link into the calculator."""
    if name is None or like is None or link is None:
        items = "".join([f"<li><code>{escape(error.field)}</code>: {escape(error.allowed)}</li>" for error in errors])
        return f'<p class="em-verdict-line">The record was not accepted.</p><ul>{items}</ul>'
    return (
        f"<p>{escape(name)} is planned with the rules of {escape(like)}, the nearest "
        f'listed part, and with its own memory totals.</p><p><a class="em-button" href="../{escape(link)}">'
        "Open it in the calculator</a></p>"
    )
