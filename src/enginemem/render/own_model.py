"""What the calculator says of a pasted `config.json`: the facts that were read, or every fault by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from enginemem.architecture import Architecture
from enginemem.inputs import FieldError
from enginemem.render.catalogue import kv_bytes_per_token
from enginemem.render.figures import operand
from enginemem.render.markup import escape, quiet_unit
from enginemem.units import round_half_up

_MOST_FAULTS = 12
_KINDS = {
    "full": "full attention",
    "sliding": "sliding window",
    "chunked": "chunked attention",
    "mla": "latent attention",
    "compressed": "compressed attention",
    "recurrent": "recurrent state",
    "none": "no cache",
}


def layer_kinds(model: Architecture) -> str:
    """The layers by what they cache, such as `12 sliding window of 128 tokens, 12 full attention`."""
    counts: Counter[str] = Counter()
    for spec in model.layers:
        span = spec.window or spec.chunk
        words = _KINDS.get(spec.kind, spec.kind) + (f" of {span:,} tokens" if span else "")
        words += f", a row for {spec.tokens:,} tokens" if spec.tokens > 1 else ""
        counts[words + (" with an index key" if spec.index_head else "")] += spec.layers
    return ", ".join([f"{layers:,} {words}" for words, layers in counts.items()])


def _heads(model: Architecture) -> str:
    """Query heads, and what a token stores a layer: KV heads of a size, or a latent row."""
    stored = []
    for spec in model.layers:
        if spec.kind == "mla":
            stored.append(f"a latent row of {spec.head_size:,}")
        elif spec.kv_heads:
            stored.append(f"KV {spec.kv_heads:,} of {spec.head_size:,}")
    return f"{model.heads:,} query; {', '.join(dict.fromkeys(stored)) or 'no KV'}"


def _token(model: Architecture) -> str:
    """The bytes of a token in all layers; why there are none where no rule lays the cache out."""
    per_token = kv_bytes_per_token(model)
    if per_token is None and model.unmodeled is None:
        return "no engine keeps its rows in 16 bits: see the bytes a token of each"
    return f"not modeled: {model.unmodeled}" if per_token is None else f"{operand(per_token, '')} B before any split"


def billions(parameters: int) -> str:
    """A parameter count as people say it: `8.03 B`."""
    return f"{round_half_up(Fraction(parameters, 10**9), 2)} B"


def facts(model: Architecture) -> list[tuple[str, str]]:
    """What was read, label by label."""
    parameters = f"{billions(model.parameters)} ({model.parameters:,})"
    if model.experts is not None:
        parameters += f", {billions(model.active_parameters)} active"
    rows = [
        ("Family, class", f"{model.family}, {model.class_name}"),
        ("Parameters", parameters),
        ("Layers", f"{model.num_layers:,}: {layer_kinds(model)}"),
        ("Heads", _heads(model)),
        ("KV of a token, 16-bit", _token(model)),
        (
            "Stored as",
            model.dtype if model.quantization is None else f"{model.dtype}, quantised ({model.quantization})",
        ),
        ("Longest sequence", f"{model.max_position:,} tokens"),
    ]
    return rows + [("Note", note) for note in model.notes]


def verdict(model: Architecture) -> str:
    """The facts that the figures follow from, as a short table."""
    rows = "".join(
        [f'<tr><th scope="row">{label}</th><td>{quiet_unit(text)}</td></tr>' for label, text in facts(model)]
    )
    return (
        f'<p class="em-config-name"><strong>{escape(model.name)}</strong> takes the place of the preset.</p>'
        '<table class="em-config-facts"><caption class="em-hidden">What was read of the configuration</caption>'
        f"<tbody>{rows}</tbody></table>"
    )


def faults(errors: Sequence[FieldError]) -> str:
    """Every fault of a configuration by its field; very many are counted."""
    lines = [f"<li><code>{escape(error.field)}</code>: {escape(sentence(error))}</li>" for error in errors]
    more = len(errors) - _MOST_FAULTS
    rest = f'<p class="em-small">and {more:,} more</p>' if more > 0 else ""
    return (
        '<p class="em-config-name">This configuration was not accepted.</p>'
        f'<ul class="em-config-faults">{"".join(lines[:_MOST_FAULTS])}</ul>{rest}'
    )


def sentence(error: FieldError) -> str:
    """What was given and what is allowed, in two short sentences."""
    hint = f" Did you mean {error.suggestion}?" if error.suggestion else ""
    return f"{error.given} is not allowed. Allowed: {error.allowed}.{hint}"
