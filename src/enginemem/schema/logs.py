"""Schema of ``data/logs.yaml``: what servers printed, to hold a plan against."""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from enginemem.schema.base import Identifier, Json, StrictModel, Text
from enginemem.schema.quantities import BytesText, base_units, parse_bytes
from enginemem.units import Exact

CaseId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
Name = Annotated[str, Field(min_length=1)]
Figure = Literal["weights_bytes", "kv_pool_bytes", "kv_tokens", "kv_bytes_per_token"]
_COUNT = re.compile(r"\d{1,3}(,\d{3})*")


def printed_value(text: str) -> Exact:
    """The value of a printed figure: bytes with their unit, also below zero, or a whole number with commas."""
    if _COUNT.fullmatch(text):
        return int(text.replace(",", ""))
    return -parse_bytes(text[1:]) if text.startswith("-") else parse_bytes(text)


class LogSource(StrictModel):
    """Where the log was published; the repository and number where it stands in one."""

    title: Text
    repository: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    issue: int | None = None
    pull_request: int | None = None

    @model_validator(mode="after")
    def _names_one_place(self) -> Self:
        if (self.repository is not None) != (self.issue is not None or self.pull_request is not None):
            raise ValueError("a repository and the number of an issue or a pull request go together")
        return self


class PrintedLog(StrictModel):
    """One log: its settings under our names, its figures as printed, and how it ended.

    `record` is its id in the collection of printed start-up logs that it was copied from.
    """

    record: Identifier
    engine: Identifier
    release: Text | None = Field(description="As printed; null where the log does not state it.")
    date: date | None
    source: LogSource
    inputs: dict[Name, str | int]
    beside_weights: dict[Name, BytesText] = Field(
        default={}, description="What the engine measured beside the weights, part by part."
    )
    printed: dict[Figure, Text]
    started: bool
    outcome: Text
    note: Text

    @model_validator(mode="after")
    def _prints_figures(self) -> Self:
        for name, text in self.printed.items():
            if _COUNT.fullmatch(text) is None and not name.endswith("_bytes"):
                raise ValueError(f"{name} is a whole number, not {text!r}")
            printed_value(text)
        return self

    def generated(self) -> dict[str, Json]:
        """The log with each figure's value beside its text, and the sum of what was measured beside the weights."""
        facts: dict[str, Json] = self.model_dump(mode="json")
        facts["printed"] = {
            name: {"text": text, "value": base_units(printed_value(text))} for name, text in self.printed.items()
        }
        measured = sum([Fraction(parse_bytes(text)) for text in self.beside_weights.values()], Fraction(0))
        return facts | {"measured": base_units(measured) if self.beside_weights else None}


class LogsCase(StrictModel):
    """One model on one replica, and the logs of it."""

    title: Text
    question: Text
    inputs: dict[Name, str | int]
    logs: list[PrintedLog]

    @model_validator(mode="after")
    def _each_record_once(self) -> Self:
        records = [log.record for log in self.logs]
        if len(set(records)) != len(records):
            raise ValueError("a record stands here twice")
        return self


class LogsFile(StrictModel):
    """The whole of ``data/logs.yaml``."""

    checked: date
    cases: dict[CaseId, LogsCase]

    def generated(self) -> dict[str, Json]:
        """The file as the package carries it."""
        facts: dict[str, Json] = self.model_dump(mode="json", exclude={"cases"})
        cases: dict[str, Json] = {}
        for case_id, case in self.cases.items():
            own: dict[str, Json] = case.model_dump(mode="json", exclude={"logs"})
            cases[case_id] = own | {"logs": [log.generated() for log in case.logs]}
        return facts | {"cases": cases}
