"""The tensors of a layer's parts, as checkpoints hold them: attention, latent attention, MLP, experts."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.tensors import FP32, INT32, Format, Split, Tensor, TensorKind

Tensors = tuple[Tensor, ...]


def norm(name: str, width: int, form: Format) -> Tensor:
    """A norm's weight."""
    return Tensor(name, "norm", width, form=form)


def vector(name: str, width: int, form: Format, *, split: bool = False, heads: int = 0, copied: bool = False) -> Tensor:
    """A bias, a sink or a scale of `width` elements; `copied` when it follows KV heads."""
    return Tensor(
        name, "small", width, split=("heads" if copied else "rows") if split else "whole", heads=heads, form=form
    )


class Attention(NamedTuple):
    """Grouped attention of one layer; widths in elements.

    `query_norm` is `head` (one weight over a head), `full` (over all heads of a rank) or empty. `gate` doubles the
    query projection; `shared_values` stores no V projection because K stands for V.
    """

    hidden: int
    heads: int
    kv_heads: int
    head: int
    v_head: int
    bias: bool = False
    output_bias: bool = False
    query_norm: str = ""
    gate: bool = False
    shared_values: bool = False
    sinks: bool = False


def attention(facts: Attention, form: Format, prefix: str = "self_attn") -> Tensors:
    """Query, key, value and output projections with their biases and norms."""
    h, queries, keys, values = (
        facts.hidden,
        facts.heads * facts.head * (2 if facts.gate else 1),
        facts.kv_heads * facts.head,
        facts.kv_heads * facts.v_head,
    )
    projections = [("q_proj", queries, facts.heads, False), ("k_proj", keys, facts.kv_heads, True)]
    if not facts.shared_values:
        projections.append(("v_proj", values, facts.kv_heads, True))
    tensors = []
    for name, rows, heads, copied in projections:
        split: Split = "heads" if copied else "rows"
        tensors.append(
            Tensor(f"{prefix}.{name}", "attention", rows, h, split, heads, fused="qkv", linear=True, form=form)
        )
        if facts.bias:
            tensors.append(vector(f"{prefix}.{name}.bias", rows, form, split=True, heads=heads, copied=copied))
    inputs = facts.heads * facts.v_head
    tensors.append(Tensor(f"{prefix}.o_proj", "attention", h, inputs, "columns", facts.heads, linear=True, form=form))
    if facts.output_bias:
        tensors.append(vector(f"{prefix}.o_proj.bias", h, form))
    if facts.query_norm == "head":
        tensors += [norm(f"{prefix}.q_norm", facts.head, form), norm(f"{prefix}.k_norm", facts.head, form)]
    elif facts.query_norm == "full":
        tensors.append(Tensor(f"{prefix}.q_norm", "norm", facts.heads * facts.head, 1, "rows", facts.heads, form=form))
        tensors.append(Tensor(f"{prefix}.k_norm", "norm", keys, 1, "heads", facts.kv_heads, form=form))
    if facts.sinks:
        tensors.append(vector(f"{prefix}.sinks", facts.heads, form, split=True, heads=facts.heads))
    return tuple(tensors)


class Latent(NamedTuple):
    """Multi-head latent attention (MLA) of one layer; ranks and widths in elements, `query_rank` None without a
    compressed query. An indexer has `index_heads` heads of `index_head` elements (0: none)."""

    hidden: int
    heads: int
    query_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v_head: int
    index_heads: int = 0
    index_head: int = 0
    gate: bool = False


def latent(facts: Latent, form: Format, prefix: str = "self_attn") -> Tensors:
    """The projections down to the latent row and up from it, and the indexer's."""
    h, heads, key = facts.hidden, facts.heads, facts.nope + facts.rope

    def matrix(name: str, rows: int, columns: int, split: Split = "whole", fused: str = "") -> Tensor:
        owned = heads if split != "whole" else 0
        return Tensor(
            f"{prefix}.{name}",
            "attention",
            rows,
            columns,
            split,
            owned,
            fused=fused,
            linear=True,
            form=form,
        )

    down = matrix("kv_a_proj_with_mqa", facts.kv_rank + facts.rope, h, fused="qkv_a" if facts.query_rank else "")
    if facts.query_rank is None:
        tensors = [matrix("q_proj", heads * key, h, "rows"), down]
    else:
        tensors = [
            matrix("q_a_proj", facts.query_rank, h, fused="qkv_a"),
            down,
            norm(f"{prefix}.q_a_layernorm", facts.query_rank, form),
            matrix("q_b_proj", heads * key, facts.query_rank, "rows"),
        ]
    tensors += [
        norm(f"{prefix}.kv_a_layernorm", facts.kv_rank, form),
        matrix("kv_b_proj", heads * (facts.nope + facts.v_head), facts.kv_rank, "rows"),
        matrix("o_proj", h, heads * facts.v_head, "columns"),
    ]
    if facts.gate:
        tensors.append(matrix("g_proj", heads * facts.v_head, h, "rows"))
    if facts.index_head:
        width, name = facts.index_head, f"{prefix}.indexer"
        rank = facts.query_rank or h
        tensors += [
            Tensor(f"{name}.wq_b", "indexer", width * facts.index_heads, rank, linear=True, form=form),
            # Kept in the model's type: the engines fuse the two into one unquantised product.
            Tensor(f"{name}.wk", "indexer", width, h, fused="index", form=form),
            Tensor(f"{name}.weights_proj", "indexer", facts.index_heads, h, fused="index", form=form),
            Tensor(f"{name}.k_norm.weight", "norm", width, form=FP32),
            Tensor(f"{name}.k_norm.bias", "norm", width, form=FP32),
        ]
    return tuple(tensors)


def mlp(
    hidden: int,
    width: int,
    form: Format,
    *,
    gated: bool = True,
    bias: bool = False,
    prefix: str = "mlp",
    kind: TensorKind = "mlp",
) -> Tensors:
    """Gate, up and down projections (no gate unless `gated`)."""  # fmt: skip
    names = ("gate_proj", "up_proj") if gated else ("up_proj",)
    tensors = []
    for name in names:
        tensors.append(Tensor(f"{prefix}.{name}", kind, width, hidden, "rows", fused="gate_up", linear=True, form=form))
        if bias:
            tensors.append(vector(f"{prefix}.{name}.bias", width, form, split=True))
    tensors.append(Tensor(f"{prefix}.down_proj", kind, hidden, width, "columns", linear=True, form=form))
    if bias:
        tensors.append(vector(f"{prefix}.down_proj.bias", hidden, form))
    return tuple(tensors)


class Moe(NamedTuple):
    """A mixture of experts: `total` experts of which a token takes `active`, each of `width`; `shared` is the width of
    all shared experts together. `correction` is a routing bias kept in 32 bits; `latent` the width that experts work
    in (None: the hidden size), with a norm on the way back where `latent_norm`, and with projections that no quantiser
    touches where `wide_latent`. `table` is the number of tokens whose experts are looked up instead (0: none);
    `wide_router` keeps the router's matrix in 32 bits."""

    total: int
    active: int
    width: int
    shared: int = 0
    correction: bool = False
    shared_gate: bool = False
    latent: int | None = None
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    wide_router: bool = False
    latent_norm: bool = False
    wide_latent: bool = False
    table: int = 0


def experts(facts: Moe, hidden: int, form: Format, prefix: str = "mlp", shared: str = "shared_experts") -> Tensors:
    """Router, experts and shared experts of one layer."""
    tensors = [Tensor(f"{prefix}.gate", "router", facts.total, hidden, form=FP32 if facts.wide_router else form)]
    if facts.table:
        tensors.append(Tensor(f"{prefix}.gate.tid2eid", "small", facts.table, facts.active, form=INT32))
    if facts.correction:
        tensors.append(Tensor(f"{prefix}.gate.e_score_correction_bias", "small", facts.total, form=FP32))
    if facts.router_bias:
        tensors.append(vector(f"{prefix}.gate.bias", facts.total, form))
    inner = facts.latent or hidden
    if facts.latent:
        for name, rows, columns in (("fc1_latent_proj", inner, hidden), ("fc2_latent_proj", hidden, inner)):
            narrow = not facts.wide_latent
            tensors.append(Tensor(f"{prefix}.{name}", "shared_experts", rows, columns, linear=narrow, form=form))
        if facts.latent_norm:
            tensors.append(norm(f"{prefix}.latent_norm", inner, form))
    for tensor in mlp(inner, facts.width, form, gated=facts.gated, bias=facts.bias, prefix=f"{prefix}.experts.0"):
        tensors.append(tensor._replace(kind="experts" if tensor.columns > 1 else "small", copies=facts.total))
    if facts.shared:
        tensors += mlp(
            hidden, facts.shared, form, gated=facts.gated, bias=facts.bias, prefix=f"{prefix}.{shared}",
            kind="shared_experts",
        )  # fmt: skip
        if facts.shared_gate:
            tensors.append(Tensor(f"{prefix}.shared_expert_gate", "router", 1, hidden, form=form))
    return tuple(tensors)
