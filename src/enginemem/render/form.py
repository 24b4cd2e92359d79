"""The calculator's form, made from the input table: what is asked, how it may be answered, and what its default is."""

from __future__ import annotations

from collections.abc import Mapping

from enginemem.hardware import gpu_ids, load_gpu
from enginemem.inputs import Input
from enginemem.release import PINNED, load_release
from enginemem.render.markup import escape, title
from enginemem.render.model_fields import model_options, model_search, own_config
from enginemem.scenario import PLAN_INPUTS

_SECTIONS = {"hardware": "Hardware", "model": "Model", "traffic": "Traffic", "assumptions": "Assumptions"}
_WIDE = frozenset({"gpu", "model"})
_SHORT_LABELS = {"preload": "In use before SGLang", "max_model_len": "Max model length", "tp": "Tensor parallel"}
_TOKEN_STEPS = (1, 16, 64, 128, 256, 512, *[1000 << power for power in range(11)])
_COUNT_STEPS = tuple([1 << power for power in range(13)])


def field_id(key: str) -> str:
    """The id of a field's control."""
    return "in-" + key.replace(".", "-")


def steps(field: Input) -> tuple[str, ...]:
    """The texts that the arrow keys walk through, inside the field's bounds."""
    if field.kind == "count":
        grid = _TOKEN_STEPS if field.unit == "tokens" else _COUNT_STEPS
        return tuple([str(value) for value in grid if field.low <= value <= field.high])
    if field.kind == "decimal":
        top = min(int(field.high), 2)
        values = [f"{hundredths // 100}.{hundredths % 100:02d}" for hundredths in range(5, 100 * top + 1, 5)]
        return tuple(["0", *values] if not field.low_open else values)
    if field.kind == "quantity" and not field.auto:
        unit = "GiB" if field.default.endswith("GiB") else "GB"
        return tuple([(str(half // 2) if half % 2 == 0 else f"{half // 2}.5") + unit for half in range(25)])
    return ()


def typed(field: Input) -> str:
    """The characters that texts of the field are made of: what the next key may be."""
    digits = "0123456789"
    if field.kind == "quantity":
        return f"{digits}.GMiB"
    if field.kind == "decimal":
        return f"{digits}."
    return digits if field.kind == "count" else f"{digits},"


def form(texts: Mapping[str, str]) -> str:
    """The whole form at its defaults; `texts` say what `auto` stands for (`auto.<key>`)."""
    sections = [_section(key, heading, texts) for key, heading in _SECTIONS.items()]
    folds = [_fold(engine, texts) for engine in PINNED]
    return "".join([*sections, *folds])


def _fields(section: str, texts: Mapping[str, str]) -> str:
    return "".join([_around(field, _field(field, texts)) for field in PLAN_INPUTS if field.section == section])


def _around(field: Input, html: str) -> str:
    """A field with what stands beside it: the model has a search and a configuration of one's own."""
    return model_search(field_id(field.key)) + html + own_config() if field.kind == "model" else html


def _section(key: str, heading: str, texts: Mapping[str, str]) -> str:
    return f'<fieldset><legend>{heading}</legend><div class="em-fields em-{key}">{_fields(key, texts)}</div></fieldset>'


def _fold(engine: str, texts: Mapping[str, str]) -> str:
    """An engine's knobs. Where scripts run, its fields are text until it opens (form.js): less to look through."""
    name = escape(load_release(engine).name)
    return (
        f'<details class="em-knobs em-{engine}" id="em-knobs-{engine}"><summary>{title(engine)} '
        f'<span class="em-count" data-count="{engine}"></span></summary>'
        f'<noscript><fieldset><legend class="em-hidden">{name} options</legend>'
        f'<div class="em-fields">{_fields(engine, texts)}</div></fieldset></noscript></details>'
    )


def _field(field: Input, texts: Mapping[str, str]) -> str:
    own = field_id(field.key)
    label = escape(_SHORT_LABELS.get(field.key, field.label))
    shown = escape(field.default)
    resolved = escape(texts.get(f"auto.{field.key}", ""))
    wide = " em-wide" if field.key in _WIDE else (" em-assumed" if field.assumption else "")
    hint = ""
    if field.auto:
        hint = f'<span class="em-auto" id="{own}-auto" data-text="auto.{escape(field.key)}">{resolved}</span>'
    elif field.kind == "count":
        hint = f'<span class="em-auto" id="{own}-auto">{escape(field.unit)}</span>'
    return (
        f'<div class="em-field{wide}" data-key="{escape(field.key)}">'
        f'<label for="{own}">{label}</label>'
        f'<div class="em-control">{_control(field, own)}{hint}'
        f'<button type="button" class="em-reset" data-reset="{escape(field.key)}" '
        f'aria-label="Reset {label} to {shown}" title="Back to {shown}">↺</button></div>'
        f'<p class="em-error" id="{own}-error"></p>'
        f'<p class="em-help" id="{own}-help">{_help(field)}</p></div>'
    )


def _help(field: Input) -> str:
    assumed = " An assumption: no release decides it." if field.assumption else ""
    option = f" <code>{escape(field.option)}</code>" if field.option else ""
    return f"{escape(field.help)}{assumed}{option}"


def _control(field: Input, own: str) -> str:
    described = f"{own}-auto " if field.auto or field.kind == "count" else ""
    common = (
        f'id="{own}" name="{escape(field.key)}" data-default="{escape(field.default)}" '
        f'aria-describedby="{described}{own}-help {own}-error"'
    )
    if field.kind == "gpu":
        return f"<select {common}>{gpu_options(field.default)}</select>"
    if field.kind == "model":
        return f"<select {common}>{model_options(field.default)}</select>"
    if field.choices is not None or field.kind == "flag":
        names = field.choices() if field.choices is not None else ("true", "false")
        options = [_option(name, name, field.default) for name in ((("auto",) if field.auto else ()) + names)]
        return f"<select {common}>{''.join(options)}</select>"
    keys = f' data-typed="{typed(field)}"'
    keys += f' data-steps="{",".join(steps(field))}"' if steps(field) else ""
    mode = ' inputmode="text"' if field.auto or field.kind == "quantity" else ' inputmode="numeric"'
    return (
        f'<input type="text" {common} value="{escape(field.default)}"{mode}{keys} '
        'autocomplete="off" autocapitalize="off" spellcheck="false">'
    )


def _option(value: str, text: str, default: str) -> str:
    selected = " selected" if value == default else ""
    return f'<option value="{escape(value)}"{selected}>{escape(text)}</option>'


def gpu_options(default: str) -> str:
    """The parts as options of a select, by vendor."""
    gpus = [load_gpu(gpu_id) for gpu_id in gpu_ids()]
    groups: dict[str, list[str]] = {}
    for gpu in gpus:
        groups.setdefault(gpu.vendor, []).append(_option(gpu.id, gpu.name, default))
    return "".join(
        [f'<optgroup label="{escape(vendor)}">{"".join(items)}</optgroup>' for vendor, items in groups.items()]
    )
