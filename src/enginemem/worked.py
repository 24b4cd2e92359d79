"""The published worked comparisons, recomputed figure by figure."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from enginemem import dataset
from enginemem.comparison import Comparison, compare
from enginemem.engines.plan import EnginePlan
from enginemem.scenario import Scenario
from enginemem.units import GB, round_half_up

Figure = int | str | bool | None


class Check(NamedTuple):
    """One published figure beside the computed one."""

    case: str
    engine: str | None
    figure: str
    published: Figure
    computed: Figure

    @property
    def equal(self) -> bool:
        """Whether the two agree to the digit."""
        return type(self.published) is type(self.computed) and self.published == self.computed


class WorkedCase(NamedTuple):
    """One published comparison: its inputs as a scenario, and what was published."""

    id: str
    title: str
    question: str
    scenario: Scenario
    record: Mapping[str, Any]


@cache
def worked_cases() -> tuple[WorkedCase, ...]:
    """The published comparisons in the order of the page."""
    cases = dataset.read("worked.json")["cases"]
    order = ("one-h100-three-policies", "output-ceiling-300", "fp8-kv")
    return tuple(
        WorkedCase(name, record["title"], record["question"], Scenario(**record["inputs"]), record)
        for name, record in sorted(cases.items(), key=lambda item: order.index(item[0]))
    )


def _ratio(value: Fraction | None) -> str | None:
    return None if value is None else f"{value.numerator}/{value.denominator}"


def _printed_gb(value: int | None) -> str | None:
    return None if value is None else round_half_up(Fraction(value, GB), 2)


_BINDS = {"kv_memory": "KV memory", "request_cap": "request cap"}


def computed_figures(plan: EnginePlan) -> dict[str, Figure]:
    """Every figure that the published page states or implies for the plan's engine, under its published name."""
    step, rate = plan.decode_step_seconds, plan.output_tokens_per_second
    figures: dict[str, Figure] = {
        "kv_pool_bytes": plan.kv_pool_bytes,
        "kv_pool_gb_printed": _printed_gb(plan.kv_pool_bytes),
        "kv_tokens": plan.kv_tokens,
        "page_tokens": plan.page_tokens,
        "running": plan.running,
        "binds": None if plan.binds is None else _BINDS.get(plan.binds, plan.binds),
        "largest_decode_graph": plan.largest_decode_graph,
        "running_batch_in_a_graph": plan.in_graph,
        "step_token_budget": plan.step_token_budget,
        "decode_step_s_exact": _ratio(step),
        "decode_step_ms_printed": None if step is None else round_half_up(step * 1000, 2),
        "aggregate_tokens_per_s_printed": None if rate is None else int(round_half_up(rate).replace(",", "")),
    }
    return figures | _ENGINE_FIGURES[plan.engine](plan, plan.derivation.values)


def _vllm(plan: EnginePlan, steps: Mapping[str, Any]) -> dict[str, Figure]:
    sizes = steps["dispatch.capture_sizes"]
    return {
        "running_cap": _whole(plan.resolved["max_num_seqs"].value),
        "budget_bytes": steps["budget.requested"],
        "budget_gb_printed": _printed_gb(steps["budget.requested"]),
        "decode_graph_sizes": len(sizes),
    }


def _sglang(plan: EnginePlan, steps: Mapping[str, Any]) -> dict[str, Figure]:
    return {
        "running_cap": steps["pool.request_cap"],
        "reserve_mib": _whole_number(steps["reserve.total"]),
        "mem_fraction_static_printed": round_half_up(Fraction(str(steps["resolve.fraction"])), 3),
        "kept_for_next_admission_tokens": steps["admission.keep"],
        "running_after_full_decay": plan.running_decayed,
        "prefill_graph_sizes": steps["resolve.prefill_graphs"],
    }


def _tensorrt_llm(plan: EnginePlan, steps: Mapping[str, Any]) -> dict[str, Figure]:
    free = int(steps["budget.free"])
    return {
        "running_cap": _whole(plan.resolved["max_batch_size"].value),
        "free_bytes": free,
        "free_gb_printed": _printed_gb(free),
        "blocks": plan.blocks,
        "reserved_blocks_per_request": steps["admission.reserved"],
    }


def _whole_number(value: float) -> Figure:
    return int(value) if value == int(value) else str(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


_ENGINE_FIGURES = {"vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt_llm}


def shared_figures(comparison: Comparison) -> dict[str, Figure]:
    """The published figures that stand outside the columns; None where the engines disagree."""
    scenario = comparison.scenario
    plans = comparison.engines.values()
    context = scenario.prompt + Fraction(scenario.mean_output, 2)
    prefill = _only({plan.prefill_seconds for plan in plans})
    per_token = _only({plan.kv_bytes_per_token for plan in plans})
    return {
        "prefill_ms_printed": None if prefill is None else round_half_up(prefill * 1000, 1),
        "mean_context_tokens": int(context) if context.denominator == 1 else _ratio(context),
        "kv_bytes_per_token": per_token if isinstance(per_token, int) else _ratio(per_token),
    }


def _only(values: set[Fraction | None] | set[int | Fraction | None]) -> int | Fraction | None:
    return values.pop() if len(values) == 1 else None


def check_case(case: WorkedCase) -> list[Check]:
    """Every published figure of a case beside the computed one."""
    comparison = compare(case.scenario)
    shared = shared_figures(comparison)
    published_shared = {
        "prefill_ms_printed": case.record["prefill_ms"],
        "mean_context_tokens": case.record["mean_context_tokens"],
        "kv_bytes_per_token": case.record["kv_bytes_per_token"],
    }
    checks = [Check(case.id, None, name, value, shared[name]) for name, value in published_shared.items()]
    for column, published in case.record["engines"].items():
        computed = computed_figures(comparison.engines[column])
        checks += [Check(case.id, column, name, value, computed.get(name)) for name, value in published.items()]
    return checks
