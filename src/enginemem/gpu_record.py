"""A GPU record that somebody pastes: checked with the schema of the hardware table, turned into a link.

The only module beside `schema` that needs pydantic; the browser loads it when a record is pasted, and not before.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from enginemem.hardware import Gpu, gpu_ids, load_gpu
from enginemem.inputs import FieldError, InvalidInputs
from enginemem.scenario import Scenario
from enginemem.schema.hardware import Part
from enginemem.units import Exact, parse_quantity

_LONGEST = 100_000


class CheckedRecord(NamedTuple):
    """The faults of a record (none: it is good), else its name, the listed part that it is planned as, and the link."""

    errors: tuple[FieldError, ...]
    name: str | None = None
    like: str | None = None
    link: str | None = None


def check_record(text: str) -> CheckedRecord:
    """The verdict on a pasted record: one part as the hardware table holds it, as a JSON object.

    Only the two memory totals travel in the link; the rules that depend on the compute capability and the floors are
    those of the listed part with the same capability and the same device name, else the nearest CUDA total.
    """
    if len(text) > _LONGEST:
        return CheckedRecord((FieldError("record", "the text", f"at most {_LONGEST:,} characters"),))
    try:
        part = Part.model_validate_json(text)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        return CheckedRecord(tuple([_fault(".".join(map(str, item["loc"])), item["msg"]) for item in faults]))
    cuda = None if part.cuda_total.value is None else parse_quantity(part.cuda_total.value)
    smi = None if part.nvidia_smi_total.value is None else parse_quantity(part.nvidia_smi_total.value)
    if cuda is None:
        return CheckedRecord((FieldError("cuda_total", "null", "a total: without it no engine's budget is known"),))
    like = _nearest(part, cuda)
    if like is None:
        allowed = ", ".join(sorted({_capability(gpu) for gpu in _planned()}))
        return CheckedRecord((FieldError("compute_capability", str(part.compute_capability), allowed),))
    inputs: dict[str, object] = {"gpu": like.id, "cuda_total": cuda}
    if smi is not None:
        inputs["smi_total"] = smi
    try:
        scenario = Scenario(**inputs)
    except InvalidInputs as invalid:
        return CheckedRecord(tuple(invalid.errors))
    return CheckedRecord((), part.name, like.name, scenario.link())


def _fault(field: str, message: str) -> FieldError:
    return FieldError(field or "record", "what stands there", message)


def _planned() -> list[Gpu]:
    return [gpu for gpu in map(load_gpu, gpu_ids()) if gpu.compute_capability is not None]


def _capability(gpu: Gpu) -> str:
    return "" if gpu.compute_capability is None else "{}.{}".format(*gpu.compute_capability)


def _nearest(part: Part, cuda: Exact) -> Gpu | None:
    """The listed part of the same name, else the one with the nearest CUDA total, of the same compute capability."""
    same = [gpu for gpu in _planned() if _capability(gpu) == part.compute_capability]
    named = [gpu for gpu in same if gpu.records["device_name"] == part.device_name]
    by_total = {gpu.id: (gpu.cuda_total is None, abs((gpu.cuda_total or 0) - cuda)) for gpu in same}
    return min(named or same, key=lambda gpu: by_total[gpu.id], default=None)
