"""The hardware and model tables, with every source and every gap in sight."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from enginemem.architecture import Architecture, load_model, model_facts, model_ids
from enginemem.hardware import Gpu, gpu_ids, load_gpu
from enginemem.render.markup import escape
from enginemem.scenario import Scenario
from enginemem.units import GB, GIB, Exact, round_half_up

_UNKNOWN = "–"
_RECORDS = {
    "cuda_total": "CUDA total",
    "nvidia_smi_total": "nvidia-smi total",
    "bf16_dense": "BF16, dense",
    "fp16_dense": "FP16, dense",
    "fp8_dense": "FP8, dense",
    "fp4_dense": "FP4, dense",
    "bf16_sparse": "BF16, sparse",
    "fp8_sparse": "FP8, sparse",
    "fp4_sparse": "FP4, sparse",
    "memory_bandwidth": "Memory bandwidth",
    "measured_copy_bandwidth": "Copy bandwidth, measured",
}
_COLUMNS = (
    ("CC", None, 0),
    ("CUDA total, GiB", "cuda_total", GIB),
    ("nvidia-smi, GiB", "nvidia_smi_total", GIB),
    ("BF16, TFLOP/s", "bf16_dense", 10**12),
    ("FP8, TFLOP/s", "fp8_dense", 10**12),
    ("FP4, TFLOP/s", "fp4_dense", 10**12),
    ("Bandwidth, GB/s", "memory_bandwidth", GB),
)


def _cell(text: str, value: Exact | str | None = None) -> str:
    sort = "" if value is None else f' data-value="{value if isinstance(value, (int, str)) else float(value)}"'
    return f"<td{sort}>{text}</td>"


def _heading(label: str, sorts: str) -> str:
    """A column that the page's script sorts by; until it runs, the button does nothing."""
    return f'<th scope="col" {sorts}><button type="button" class="em-sort" disabled>{label}</button></th>'


def _number(record: Mapping[str, Any] | None, unit: int, part: str) -> str:
    value = None if record is None else record["value"]
    if value is None:
        return f'<td class="em-null" data-value=""><a href="#{part}" title="not known; the record says why">{_UNKNOWN}</a></td>'
    exact = Fraction(value)
    shown = exact / unit
    places = 2 if unit == GIB else (0 if shown.denominator == 1 else 1)
    return _cell(round_half_up(shown, places), exact / unit)


def gpu_table() -> str:
    """The parts: both memory totals, dense peaks, bandwidth; a dash leads to the reason."""
    head = _heading("Part", "data-sort") + "".join(
        [_heading(label, "data-sort data-number") for label, _, _ in _COLUMNS]
    )
    rows = "".join([_gpu_row(load_gpu(gpu_id)) for gpu_id in gpu_ids()])
    return (
        '<table class="em-table" id="em-gpus" data-sortable><caption class="em-hidden">GPUs</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _gpu_row(gpu: Gpu) -> str:
    name = f'<a href="../{escape(Scenario(gpu=gpu.id).link())}">{escape(gpu.name)}</a>'
    capability = gpu.compute_capability
    cells = [
        _cell("{}.{}".format(*capability), 100 * capability[0] + capability[1]) if capability else _cell(_UNKNOWN, "")
    ]
    cells += [_number(gpu.records.get(key), unit, gpu.id) for _, key, unit in _COLUMNS if key is not None]
    return (
        f'<tr><th scope="row">{name} <a class="em-record" href="#{gpu.id}" aria-label="Sources of {escape(gpu.name)}">'
        f"sources</a></th>{''.join(cells)}</tr>"
    )


def gpu_records() -> str:
    """Every value of every part as it was written down: where it stands, how good it is, what else was seen."""
    return "".join([_gpu_record(load_gpu(gpu_id)) for gpu_id in gpu_ids()])


def _gpu_record(gpu: Gpu) -> str:
    rows = "".join(
        [_record_row(label, gpu.records[key]) for key, label in _RECORDS.items() if gpu.records.get(key) is not None]
    )
    return (
        f'<details class="em-fold"><summary>{escape(gpu.name)} <code>{gpu.id}</code></summary>'
        f'<div class="em-scroll" id="{gpu.id}" tabindex="0" role="region" aria-label="Sources of {escape(gpu.name)}">'
        '<table class="em-table em-sources-table"><caption class="em-hidden">'
        f"{escape(gpu.name)}</caption>"
        '<thead><tr><th scope="col">quantity</th><th scope="col">value</th><th scope="col" class="em-text">source and note</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _record_row(label: str, record: Mapping[str, Any]) -> str:
    value = record["text"]
    observed = [seen["text"] for seen in record["observed"]]
    notes = [text for text in (record["source"], record["note"]) if text]
    if observed:
        notes.append("also seen: " + "; ".join(observed))
    standing = "" if value is None else f"{record['standing'].replace('_', ' ')}, {record['confidence']} confidence"
    tail = f' <span class="em-standing">{escape(standing)}</span>' if standing else ""
    shown = '<span class="em-null">not known</span>' if value is None else escape(value)
    return (
        f'<tr><th scope="row">{label}</th><td>{shown}</td>'
        f'<td class="em-text">{escape("; ".join(notes))}{tail} '
        f'<span class="em-quiet">checked {record["checked"]}</span></td></tr>'
    )


def gpu_example(gpu_id: str) -> dict[str, object]:
    """A listed part in the form in which a record is pasted."""
    gpu = load_gpu(gpu_id)
    example: dict[str, object] = {
        key: gpu.records[key] for key in ("name", "device_name", "vendor", "compute_capability")
    }
    for key in ("cuda_total", "nvidia_smi_total", "bf16_dense", "fp8_dense", "memory_bandwidth"):
        record = gpu.records[key]
        kept = ("value", "note") if record["text"] is None else ("value", "source", "standing", "confidence")
        example[key] = {name: record["text"] if name == "value" else record[name] for name in kept}
    return example


_MODEL_HEAD = (
    "Parameters", "Weights as stored, GB", "Layers", "Heads", "KV heads", "Head or row", "KV bytes a token, bf16", "Length",
)  # fmt: skip


def model_table() -> str:
    """The presets: sizes, heads, what a token costs, the longest sequence, and where the facts were read."""
    head = _heading("Model", "data-sort") + "".join([_heading(label, "data-sort data-number") for label in _MODEL_HEAD])
    rows = "".join([_model_row(load_model(model_id)) for model_id in model_ids()])
    return (
        '<table class="em-table" id="em-models" data-sortable><caption class="em-hidden">Models</caption>'
        f'<thead><tr>{head}<th scope="col" class="em-text">Read in</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def kv_bytes_per_token(model: Architecture) -> Exact | None:
    """Bytes of one token's KV over all layers at two bytes an element, unsharded; None where no rule lays it out, or
    where rows stand for several tokens: no engine keeps those in 16 bits."""
    if model.unmodeled is not None or any(spec.kind == "compressed" for spec in model.layers):
        return None
    rows = [
        Fraction(2 * spec.layers * spec.kv_heads * (spec.head_size + spec.v_head_size), spec.tokens)
        for spec in model.layers
    ]
    total = sum(rows, Fraction(0))
    return total.numerator if total.denominator == 1 else total


def cached_shape(model: Architecture) -> tuple[int, int]:
    """KV heads and their width in elements, of the first layer that caches tokens; a latent row counts as one head."""
    return next(((spec.kv_heads, spec.head_size) for spec in model.layers if spec.kv_heads), (0, 0))


def _model_row(model: Architecture) -> str:
    kv_heads, width = cached_shape(model)
    stored = model.inventory.stored_bytes + (0 if model.vision is None else model.vision.inventory.stored_bytes)
    numbers: list[Exact | None] = [
        model.parameters, Fraction(stored, GB), model.num_layers, model.heads, kv_heads, width,
        kv_bytes_per_token(model), model.max_position,
    ]  # fmt: skip
    cells = [
        _cell(_UNKNOWN, "")
        if number is None
        else _cell(f"{number:,}" if isinstance(number, int) else round_half_up(number, 2), number)
        for number in numbers
    ]
    source = model_facts(model.id)["source"]
    address = f"https://github.com/{source['repository']}/blob/{source['commit']}/{source['path']}"
    return (
        f'<tr><th scope="row"><a href="../{escape(Scenario(model=model.id).link())}">{escape(model.name)}</a>'
        f'<code class="em-hub">{escape(model.hub_id)}</code></th>{"".join(cells)}'
        f'<td class="em-text"><a href="{escape(address)}" rel="noopener">{escape(source["repository"])}</a></td></tr>'
    )
