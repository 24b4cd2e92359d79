"""What the models page prints: the KV cost of every preset in every engine, a token and a request, and why."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.architecture import Architecture, load_model, model_ids
from enginemem.comparison import ENGINES
from enginemem.engines.plan import EnginePlan
from enginemem.release import load_release
from enginemem.render import figures
from enginemem.render.markup import escape, name
from enginemem.render.own_model import layer_kinds
from enginemem.scenario import Scenario
from enginemem.units import Exact

IMAGINED = {"gpu": "b200", "cuda_total": "8TB", "smi_total": "8TB"}
"""A part that holds every preset whole, so that nothing is split and nothing fails to fit."""


class Cost(NamedTuple):
    """Bytes of one model's cache in one engine, unsplit; both None with the reason where the engine has no plan."""

    per_token: Exact | None
    per_request: Exact | None
    reason: str


class ModelCosts(NamedTuple):
    """Fragments of the page: the table, and what is not modelled, preset by preset. `families` are in the filter's list."""

    table: str
    unknown: tuple[str, ...]
    families: tuple[str, ...]
    part: str
    total: str


def cost(plan: EnginePlan) -> Cost:
    """The two parameters of a request's cache: what a token of a long one adds, and what it holds whatever its length."""
    if plan.status != "ok":
        return Cost(None, None, plan.reason or figures.STATUS[plan.status])
    return Cost(plan.kv_bytes_per_token, plan.kv_fixed_bytes_per_request, "")


def costs_of(model_id: str) -> dict[str, Cost]:
    """The costs of one preset by engine."""
    scenario = Scenario(model=model_id, **IMAGINED)
    return {column: cost(engine.plan(scenario, load_release(column))) for column, engine in ENGINES.items()}


def model_costs() -> ModelCosts:
    """Everything that the page prints of costs."""
    models = [load_model(model_id) for model_id in model_ids()]
    costs = {model.id: costs_of(model.id) for model in models}
    scenario = Scenario(**IMAGINED)
    return ModelCosts(
        table=_table(models, costs),
        unknown=tuple(_unknown(models, costs)),
        families=tuple(sorted({model.family for model in models})),
        part=scenario.gpu.name,
        total=figures.quantity(scenario.gpu.cuda_total or 0),
    )


def _heading(label: str, *, number: bool) -> str:
    sorts = "data-sort data-number" if number else 'data-sort class="em-text"'
    return f'<th scope="col" {sorts}><button type="button" class="em-sort" disabled>{label}</button></th>'


def _table(models: list[Architecture], costs: dict[str, dict[str, Cost]]) -> str:
    head = [_heading(label, number=False) for label in ("Model", "Family", "What its layers cache")]
    for column in ENGINES:
        head += [_heading(f"{name(column)} {what}", number=True) for what in ("bytes a token", "fixed bytes a request")]
    rows = "".join([_row(model, costs[model.id]) for model in models])
    return (
        '<table class="em-table" id="em-costs" data-sortable><caption class="em-hidden">KV costs by model and engine'
        f"</caption><thead><tr>{''.join(head)}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(model: Architecture, costs: dict[str, Cost]) -> str:
    cells = []
    for found in costs.values():
        cells += [_cell(found.per_token, found.reason), _cell(found.per_request, found.reason)]
    return (
        f'<tr><th scope="row"><a href="../{escape(Scenario(model=model.id).link())}">{escape(model.name)}</a></th>'
        f'<td class="em-text">{escape(model.family)}</td><td class="em-text">{escape(layer_kinds(model))}</td>'
        f"{''.join(cells)}</tr>"
    )


def _cell(value: Exact | None, reason: str) -> str:
    if value is None:
        words = "Not modeled" if reason else figures.DASH
        return f'<td class="em-null" data-value="">{words}</td>'
    return f'<td data-value="{float(value)}">{figures.operand(value, "")}</td>'


def _unknown(models: list[Architecture], costs: dict[str, dict[str, Cost]]) -> list[str]:
    """A line for each cell without a figure: model, engine and why."""
    return [
        f"{model.name}, {load_release(column).name}: {found.reason}"
        for model in models
        for column, found in costs[model.id].items()
        if found.reason
    ]
