"""What every schema shares: strict models and the JSON types that they turn into."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Json = dict[str, "Json"] | list["Json"] | str | int | bool | None
"""What a generated file may hold. No floats: a number that is no integer is an exact string."""

Text = Annotated[str, StringConstraints(min_length=1, pattern=r"^\S(.*\S)?$")]
"""One line of text without blanks at its ends."""

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")]
"""An id that links can carry: lower case, digits, dots and dashes."""


class StrictModel(BaseModel):
    """A record that refuses unknown keys and converts nothing: "8" is no integer and 8.0 is none either."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
