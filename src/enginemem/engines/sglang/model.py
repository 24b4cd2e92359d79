"""What SGLang's memory rules need to know of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from enginemem.architecture import Architecture, LayerSpec
from enginemem.engines.sglang.length import context_length
from enginemem.memo import per_model


class Window(NamedTuple):
    """Sliding-window layers: how many, and their window in tokens; heads and widths where they have their own (0: those
    of the full layers)."""

    layers: int
    tokens: int
    kv_heads: int = 0
    head: int = 0
    v_head: int = 0


class LinearAttention(NamedTuple):
    """Recurrent layers: how many, elements of the convolution's channels (unsharded) with its kernel width, and the
    state's heads, rows and columns. Channels of `groups` groups are copied once there are more GPUs; `dtype` is the
    state's own type where the configuration names a narrow one."""

    layers: int
    conv_channels: int
    kernel: int
    heads: int
    rows: int
    columns: int
    groups: int = 0
    group_width: int = 0
    dtype: str | None = None


class Vision(NamedTuple):
    """The vision tower as its config names it; None where the config has no such field."""

    layers: int | None
    hidden_size: int | None


class Compressed(NamedTuple):
    """Layers that keep a row for several tokens: the width of a row and of an index key in elements, and (tokens under
    one row, layers) of each kind; those of the fewest tokens have the index."""

    head: int
    index_head: int
    layers: tuple[tuple[int, int], ...]

    def count(self, tokens: int) -> int:
        """Layers with a row for `tokens` tokens."""
        return dict(self.layers).get(tokens, 0)


class ModelFacts(NamedTuple):
    """Shape facts of one model; sizes in elements, the context in tokens.

    `full_layers` keep keys and values of the whole context. `latent` is the width of an MLA row without its rotary
    part (`rope`); 0 for other attention. `index_head` is the width of a DSA indexer key, 0 without one.
    """

    class_name: str
    full_layers: int
    context: int
    kv_heads: int = 0
    head: int = 0
    v_head: int = 0
    latent: int = 0
    rope: int = 0
    index_head: int = 0
    window: Window | None = None
    linear: LinearAttention | None = None
    vision: Vision | None = None
    sinks: bool = False
    compressed: Compressed | None = None
    side_index: tuple[int, int] = (0, 0)
    """Layers with an index key beside keys and values, and its width in elements."""

    @property
    def mla(self) -> bool:
        """Whether attention keeps a latent row instead of keys and values (the engine's MLA backends)."""
        return self.latent > 0


def facts_from_config(config: Mapping[str, Any], *, hybrid_classes: tuple[str, ...], sinks: bool = False) -> ModelFacts:
    """Facts of a model from its `config.json` fields (`arch` for the class; vision fields with the prefix `vision_`).

    Sliding-window layers form a pool of their own only in the classes of `hybrid_classes`.
    """
    name, layers = config["arch"], config["num_hidden_layers"]
    linear = window = None
    if "linear_num_value_heads" in config:
        keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
        key_dim, value_dim = config["linear_key_head_dim"], config["linear_value_head_dim"]
        linear = LinearAttention(
            layers=config["linear_attention_layers"],
            conv_channels=2 * keys * key_dim + values * value_dim,
            kernel=config["linear_conv_kernel_dim"],
            heads=values,
            rows=value_dim,
            columns=key_dim,
        )
    if name in hybrid_classes and config.get("sliding_attention_layers"):
        window = Window(config["sliding_attention_layers"], config["sliding_window"])
    split = linear is not None or window is not None
    return ModelFacts(
        class_name=name,
        full_layers=config["full_attention_layers"] if split else layers,
        context=config["max_position_embeddings"],
        kv_heads=config.get("num_key_value_heads", 0),
        head=config.get("head_dim", 0),
        v_head=config.get("v_head_dim", config.get("head_dim", 0)),
        latent=config.get("kv_lora_rank", 0),
        rope=config.get("qk_rope_head_dim", 0),
        index_head=config.get("index_head_dim", 0),
        window=window,
        linear=linear,
        vision=_vision(config),
        sinks=sinks,
    )


def _vision(config: Mapping[str, Any]) -> Vision | None:
    if not any(key.startswith("vision_") for key in config):
        return None
    return Vision(config.get("vision_num_hidden_layers"), config.get("vision_hidden_size"))


@per_model
def facts_from_architecture(
    model: Architecture, *, hybrid_classes: tuple[str, ...], text_classes: tuple[str, ...] = ()
) -> ModelFacts | None:
    """Facts of a model; None when it has layers that no rule here covers (Mamba-1, layers of different heads).

    Window and chunked layers form a pool of their own in the classes of `hybrid_classes`, and keep the whole context in
    others; blocks without attention are allocated all the same. Classes of `text_classes` are served without images.
    """
    hybrid = model.class_name in hybrid_classes
    local = [spec for spec in model.layers if hybrid and spec.kind in ("sliding", "chunked")]
    states = [spec for spec in model.layers if spec.kind == "recurrent"]
    idle = [spec for spec in model.layers if spec.kind == "none"]
    full = [spec for spec in model.layers if spec not in local and spec not in states and spec not in idle]
    shapes = {(spec.kv_heads, spec.head_size, spec.v_head_size, spec.kind == "mla") for spec in full}
    recurrent = {spec.recurrent for spec in states}
    if len(shapes) != 1 or len({spec._replace(layers=1) for spec in local}) > 1 or len(recurrent) > 1:
        return None
    if any(state is None or state.mixer not in ("mamba2", "gdn", "kda") for state in recurrent):
        return None
    first, latent = full[0], model.latent_rank or 0
    layers = sum([spec.layers for spec in full])
    if idle and not states:
        if model.family != "Llama-Nemotron":
            return None
        layers = model.num_layers
    mla = first.kind == "mla"
    compressed = _compressed(full)
    return ModelFacts(
        class_name=model.class_name,
        full_layers=layers,
        context=context_length(model),
        kv_heads=first.kv_heads,
        head=0 if mla else first.head_size,
        v_head=first.v_head_size,
        latent=latent if mla else 0,
        rope=first.head_size - latent if mla else 0,
        index_head=max([spec.index_head for spec in full]) if mla else 0,
        window=_window(local),
        linear=_linear(states),
        vision=_encoder(model, text_classes),
        sinks=model.sinks,
        compressed=compressed,
        side_index=_side_index(full),
    )


def _side_index(full: list[LayerSpec]) -> tuple[int, int]:
    """Layers with keys and values and an index key beside them, and its width."""
    marked = [spec for spec in full if spec.kind == "full" and spec.index_head]
    return sum([spec.layers for spec in marked]), max([spec.index_head for spec in marked], default=0)


def _compressed(full: list[LayerSpec]) -> Compressed | None:
    """What compressed layers keep; they never stand beside layers that keep every token."""
    counts: dict[int, int] = {}
    for spec in full:
        if spec.kind == "compressed":
            counts[spec.tokens] = counts.get(spec.tokens, 0) + spec.layers
    if not counts:
        return None
    return Compressed(full[0].head_size, max([spec.index_head for spec in full]), tuple(sorted(counts.items())))


def _encoder(model: Architecture, text_classes: tuple[str, ...]) -> Vision | None:
    """The encoder that the reserves reckon with; None where the server takes no images."""
    if model.vision is None or model.class_name in text_classes:
        return None
    return Vision(model.vision.layers, model.vision.hidden_size)


def _window(local: list[LayerSpec]) -> Window | None:
    if not local:
        return None
    first = local[0]
    tokens = first.window or first.chunk or 1
    return Window(sum([spec.layers for spec in local]), tokens, first.kv_heads, first.head_size, first.v_head_size)


def _linear(states: list[LayerSpec]) -> LinearAttention | None:
    if not states or states[0].recurrent is None:
        return None
    state = states[0].recurrent
    return LinearAttention(
        layers=sum([spec.layers for spec in states]),
        conv_channels=state.channels,
        kernel=state.kernel,
        heads=state.heads,
        rows=state.rows,
        columns=state.columns,
        groups=state.groups,
        group_width=state.group_width,
        dtype={"bf16": "bfloat16", "fp16": "float16"}.get(state.dtype or ""),
    )
