"""An engine's derivation as a ledger: a line a step, the value at the right edge, its arithmetic and its source below."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from enginemem.columns import KEPT
from enginemem.comparison import Comparison
from enginemem.derivation import Source, Step
from enginemem.engines.plan import EnginePlan
from enginemem.release import EngineRelease, load_release
from enginemem.render import figures
from enginemem.render.ledger import Line, ledger, source_url
from enginemem.render.markup import disclosure, escape, quiet_unit, scroll_box, title
from enginemem.units import GIB, MIB, round_half_up

_STAGES = {
    "resolve": "Configuration",
    "weights": "Weights",
    "budget": "Budget",
    "layout": "Layout",
    "pool": "Pool",
    "reserve": "Reserve",
    "traffic": "Traffic",
    "admission": "Admission",
    "dispatch": "Graphs",
    "roofline": "Floors",
}
_SIGNS = {"add": ("+", "plus"), "subtract": ("−", "less"), "limit": ("≤", "at most"), "result": ("=", "gives")}
_BINARY = {"MiB": MIB, "GiB": GIB}


def panel(comparison: Comparison, column: str) -> str:
    """One engine's panel: the log line to grep for first, then the steps by stage, then the resolved options."""
    return _panel(column, comparison.engines[column])


@lru_cache(maxsize=KEPT)
def _panel(column: str, plan: EnginePlan) -> str:
    parts = [_log_line(plan)]
    if plan.reason is not None:
        parts.append(f'<p class="em-verdict-line">{figures.STATUS[plan.status]}: {escape(plan.reason)}</p>')
    parts.append(_steps(plan, load_release(column)))
    parts.append(_resolved(plan))
    return "".join(parts)


def _log_line(plan: EnginePlan) -> str:
    if plan.log_line is None:
        return '<p class="em-small">No start-up log line to compare with for these inputs.</p>'
    # No <code> in the <pre>: the theme measures those, and so lays out the closed panels when the page opens.
    return (
        f'<div class="em-grep"><p>The start-up log should say</p><pre><samp>{escape(plan.log_line)}</samp></pre></div>'
    )


def _stage(step: Step) -> str:
    name = step.id.split(".")[1]
    return _STAGES.get(name, name.replace("_", " ").capitalize())


def _steps(plan: EnginePlan, release: EngineRelease) -> str:
    parts: list[str] = []
    stage = None
    for step, line in zip(plan.steps, ledger(plan.steps), strict=True):
        if _stage(step) != stage:
            parts.append("</ol>" if stage is not None else "")
            stage = _stage(step)
            parts.append(f'<h3 class="em-stage">{escape(stage)}</h3><ol class="em-ledger">')
        parts.append(_line(step, line, release))
    return "".join([*parts, "</ol>" if stage is not None else ""])


def _line(step: Step, line: Line, release: EngineRelease) -> str:
    sign, said = _SIGNS[step.role]
    numbers = "" if line.substituted == line.symbols else f'<code class="em-numbers">{escape(line.substituted)}</code>'
    note = "" if line.note is None else f"<p>{escape(line.note)}</p>"
    sources = " ".join([_source(source, release.engine) for source in step.sources])
    return (
        f'<li id="{escape(step.id)}" class="em-role-{step.role}">'
        f'<span class="em-sign" role="img" aria-label="{said}">{sign}</span>'
        f'<span class="em-label">{escape(line.label)}</span>{_value(step, line.value)}'
        f'<div class="em-how"><code>{escape(line.symbols)}</code>{numbers}'
        f'<span class="em-sources">{sources}</span>{note}</div></li>'
    )


def _value(step: Step, text: str) -> str:
    """The value. A size stands in GB whatever the engine reckons in, so that the column holds one unit; the engine's
    own figure is beneath it."""
    exact, opened, rest = text.partition(" B (")
    if opened:
        main, beneath = rest.removesuffix(")"), f"{exact} B"
    elif step.unit in _BINARY and isinstance(step.value, int | float | Fraction):
        value = Fraction(step.value)
        main = figures.gigabytes(value * _BINARY[step.unit])
        beneath = f"{round_half_up(value, 0 if value.denominator == 1 else 4)} {step.unit}"
    else:
        return f'<span class="em-value">{quiet_unit(text)}</span>'
    return f'<span class="em-value">{quiet_unit(main)}<span class="em-exact">{escape(beneath)}</span></span>'


@lru_cache(maxsize=1024)
def _source(source: Source, engine: str) -> str:
    file = (source.file or "").rpartition("/")[2]
    shown = file or source.title or source.url or ""
    lines = "" if source.lines is None else f":{source.lines[0]}-{source.lines[1]}"
    around = ", read around the tag" if source.kind == "bracketed" else ""
    hint = escape(" ".join([text for text in (source.file, source.symbol) if text]) or shown)
    standing = f'<span class="em-standing">{source.standing}{around}</span>'
    url = source_url(source, load_release(engine))
    if url is None:
        return f'<span class="em-source">{escape(shown)} {standing}</span>'
    link = f'<a href="{escape(url)}" title="{hint}">{escape(shown + lines)}</a>'
    return f'<span class="em-source">{link} {standing}</span>'


def _resolved(plan: EnginePlan) -> str:
    if not plan.resolved:
        return ""
    rows = "".join(
        [
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(_resolved_text(value.value))}</td>'
            f'<td class="em-words">{value.set_by}</td></tr>'
            for name, value in plan.resolved.items()
        ]
    )
    table = (
        scroll_box(f"{load_release(plan.engine).name}: resolved configuration")
        + '<table class="em-table"><caption class="em-hidden">Resolved configuration</caption>'
        f'<thead><tr><th scope="col">option</th><th scope="col">value</th><th scope="col">set by</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    return disclosure("Resolved configuration", table, key=f"em-resolved-{plan.engine}")


def _resolved_text(value: object) -> str:
    if isinstance(value, float):
        return repr(value)
    if value is None or isinstance(value, (int, str, bool, tuple)):
        return figures.figure(value, "")
    return str(value)


def heading(column: str, comparison: Comparison) -> str:
    """The summary of an engine's panel: its name and what it leads to."""
    plan = comparison.engines[column]
    result = figures.count(plan.running, "running") if plan.status == "ok" else figures.STATUS[plan.status]
    return f'{title(column)} <span class="em-lead-figure">{quiet_unit(result)}</span>'
