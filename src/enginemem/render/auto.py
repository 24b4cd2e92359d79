"""What `auto` stands for beside each field: the value of the data or the one that the engine resolves to."""

from __future__ import annotations

from functools import lru_cache

from enginemem.columns import KEPT
from enginemem.comparison import Comparison
from enginemem.engines.plan import EnginePlan
from enginemem.render import figures
from enginemem.scenario import PLAN_INPUTS


def auto_texts(comparison: Comparison) -> dict[str, str]:
    """A short text for every field that offers `auto`; empty where the field is set or nothing is known."""
    values = comparison.scenario.values
    texts = _shared(comparison)
    for column, plan in comparison.engines.items():
        texts.update({f"auto.{key}": text if values[key] is None else "" for key, text in _knobs(column, plan).items()})
    return texts


@lru_cache(maxsize=KEPT)
def _knobs(column: str, plan: EnginePlan) -> dict[str, str]:
    return {field.key: _knob(plan, field.key) for field in PLAN_INPUTS if field.section == column}


def _shared(comparison: Comparison) -> dict[str, str]:
    scenario = comparison.scenario
    records = scenario.gpu.records
    known = {
        "cuda_total": _text(records.get("cuda_total")),
        "smi_total": _text(records.get("nvidia_smi_total")),
        "weight_dtype": scenario.model.dtype,
        "kv_dtype": scenario.model.dtype,
        "max_model_len": _lengths(comparison),
    }
    return {f"auto.{key}": text if scenario.values[key] is None else "" for key, text in known.items()}


def _lengths(comparison: Comparison) -> str:
    """The length that auto leads to; several where the engines derive it differently, the model's own before any does."""
    names = ("max_model_len", "context_length", "max_seq_len")
    resolved = [
        plan.resolved[name].value for plan in comparison.engines.values() for name in names if name in plan.resolved
    ]
    found = sorted({value for value in resolved if isinstance(value, int)}) or [comparison.scenario.model.max_position]
    return " or ".join([f"{value:,}" for value in found])


def _text(record: object) -> str:
    text = record.get("text") if isinstance(record, dict) else None
    return text if isinstance(text, str) else "not known"


def _knob(plan: EnginePlan, key: str) -> str:
    resolved = plan.resolved.get(key.partition(".")[2])
    if resolved is None or resolved.value is None:
        return ""
    value = resolved.value
    if isinstance(value, tuple):
        return f"{len(value)} sizes to {value[-1]:,}" if value else ""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else figures.figure(value, "")
