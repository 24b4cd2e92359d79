"""The tensors of a model, counted: what each engine shards over GPUs and stores in the checkpoint's formats.

A tensor is described as it stands in the checkpoint, unsharded. How a matrix is cut, copied or padded is the engine's
own rule (its `weights` room); what is here is only which axis belongs to heads, features or the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from enginemem.memo import per_model
from enginemem.units import ceil_div

TensorKind = Literal[
    "embedding",
    "head",
    "attention",
    "indexer",
    "recurrent",
    "mlp",
    "shared_experts",
    "experts",
    "router",
    "norm",
    "small",
]
"""What a tensor is for; `small` are biases, sinks, scales and other vectors beside the norms."""

Split = Literal["whole", "rows", "columns", "heads", "vocabulary"]
"""How tensor parallelism may cut a tensor: not at all, by its output features (`rows`), by its input features
(`columns`), by output features that belong to heads which are copied once there are more GPUs than heads (`heads`), or
by rows of the vocabulary."""


class Format(NamedTuple):
    """How the elements of a matrix are stored: `bits` each, and the scales beside them.

    One scale of `scale_bits` stands for `group` elements of a row (0: for whole rows if `row_scale_bits`, or none) of
    `group_rows` rows; `zero_bits` are the zero point of such a group, `row_scale_bits` a scale of each row, and
    `tensor_bytes` what one matrix carries on its own. `element` names the element type, `scale` that of the scales.
    """

    name: str
    bits: int
    element: str
    scale: str = "fp32"
    group: int = 0
    group_rows: int = 1
    scale_bits: int = 0
    zero_bits: int = 0
    row_scale_bits: int = 0
    tensor_bytes: int = 0


BF16, FP16, FP32 = Format("bf16", 16, "bf16"), Format("fp16", 16, "fp16"), Format("fp32", 32, "fp32")
INT32 = Format("int32", 32, "int32")


def element_bytes(form: Format, rows: int, columns: int) -> int:
    """Bytes of the elements alone of a matrix of `rows` output and `columns` input features."""
    return ceil_div(rows * columns * form.bits, 8)


def scale_bytes(form: Format, rows: int, columns: int) -> int:
    """Bytes of the scales and zero points beside the elements."""
    groups = ceil_div(rows, form.group_rows) * ceil_div(columns, form.group) if form.group else 0
    return ceil_div(groups * (form.scale_bits + form.zero_bits) + rows * form.row_scale_bits, 8) + form.tensor_bytes


class Tensor(NamedTuple):
    """`copies` tensors of one shape: `rows` output and `columns` input features (1 for a vector), in elements.

    `heads` is the number of heads that the split axis consists of (0: plain features). Matrices with the same `fused`
    name are kept as one by the engines. `linear` marks what a quantiser may store in another format; `form` is the
    format that the checkpoint stores it in.
    """

    name: str
    kind: TensorKind
    rows: int
    columns: int = 1
    split: Split = "whole"
    heads: int = 0
    copies: int = 1
    fused: str = ""
    linear: bool = False
    form: Format = BF16

    @property
    def parameters(self) -> int:
        """The number of elements."""
        return self.rows * self.columns * self.copies

    @property
    def stored_bytes(self) -> int:
        """Bytes in the checkpoint, scales included."""
        each = element_bytes(self.form, self.rows, self.columns) + scale_bytes(self.form, self.rows, self.columns)
        return each * self.copies


class Block(NamedTuple):
    """`layers` consecutive layers with the same tensors."""

    layers: int
    tensors: tuple[Tensor, ...]


class Inventory(NamedTuple):
    """All tensors of a model: `outer` ones (embedding, head, final norm) and the layers' in their order; `kinds` are
    the different layers with their counts, whatever their places."""

    outer: tuple[Tensor, ...]
    blocks: tuple[Block, ...]
    kinds: tuple[Block, ...] = ()

    @property
    def parameters(self) -> int:
        """The number of parameters; a tied head has no tensor of its own."""
        return sum(parameters_by_kind(self).values())

    @property
    def stored_bytes(self) -> int:
        """Bytes of the checkpoint's tensors."""
        return sum([count * tensor.stored_bytes for count, tensor in counted(self)])


def counted(inventory: Inventory) -> Iterable[tuple[int, Tensor]]:
    """Every tensor with how often it occurs."""
    yield from [(1, tensor) for tensor in inventory.outer]
    for block in inventory.kinds:
        yield from [(block.layers, tensor) for tensor in block.tensors]


def parameters_by_kind(inventory: Inventory) -> dict[TensorKind, int]:
    """Parameters of each kind of tensor, only kinds that occur."""
    result: dict[TensorKind, int] = {}
    for count, tensor in counted(inventory):
        result[tensor.kind] = result.get(tensor.kind, 0) + count * tensor.parameters
    return result


def joined(layers: Sequence[tuple[Tensor, ...]]) -> tuple[Block, ...]:
    """Layers in their order as runs of equal ones."""
    runs: list[Block] = []
    for tensors in layers:
        if runs and runs[-1].tensors == tensors:
            runs[-1] = Block(runs[-1].layers + 1, tensors)
        else:
            runs.append(Block(1, tensors))
    return tuple(runs)


def distinct(layers: Sequence[tuple[Tensor, ...]]) -> tuple[Block, ...]:
    """The different layers with their counts, in order of first appearance."""
    counts: dict[tuple[Tensor, ...], int] = {}
    for tensors in layers:
        counts[tensors] = counts.get(tensors, 0) + 1
    return tuple([Block(count, tensors) for tensors, count in counts.items()])


def blocks_between(blocks: Sequence[Block], first: int, last: int) -> tuple[Block, ...]:
    """The layers from index `first` up to, but without, `last`."""
    result, at = [], 0
    for block in blocks:
        count = min(at + block.layers, last) - max(at, first)
        if count > 0:
            result.append(Block(count, block.tensors))
        at += block.layers
    return tuple(result)


class Piece(NamedTuple):
    """What one GPU holds of a tensor: `copies` matrices of `rows` by `columns` elements."""

    rows: int
    columns: int
    copies: int


def piece(tensor: Tensor, *, tp: int, vocabulary_multiple: int, whole_experts: bool = False) -> Piece:
    """A tensor on one of `tp` GPUs.

    Heads of the `heads` split are copied once `tp` exceeds them; the vocabulary is padded to a multiple before it is
    cut, its rows rounded up. `whole_experts` spreads experts over the GPUs (the first ones take the surplus) instead of
    cutting each.
    """
    rows, columns, copies = tensor.rows, tensor.columns, tensor.copies
    if whole_experts and copies > 1:
        return Piece(rows, columns, ceil_div(copies, tp))
    if tensor.split == "rows":
        rows //= tp
    elif tensor.split == "columns":
        columns //= tp
    elif tensor.split == "heads":
        rows = rows // max(tensor.heads, 1) * max(1, tensor.heads // tp)
    elif tensor.split == "vocabulary":
        rows = ceil_div(ceil_div(rows, vocabulary_multiple) * vocabulary_multiple, tp)
    return Piece(rows, columns, copies)


def splitting_problem(tensor: Tensor, tp: int) -> str | None:
    """Why a tensor cannot be cut for `tp` GPUs, or None when it can."""
    if tensor.split == "heads":
        if tensor.heads % tp and tp % max(tensor.heads, 1):
            return f"{tensor.heads} heads in {tensor.name}"
        return None
    size = tensor.heads or {"rows": tensor.rows, "columns": tensor.columns}.get(tensor.split, tp)
    if size % tp:
        return f"{size:,} {'heads' if tensor.heads else 'features'} in {tensor.name}"
    return None


class HeldBytes(NamedTuple):
    """Bytes on one GPU: elements of the layers' matrices and their scales, embedding, head, and all other tensors."""

    linear: int
    scales: int
    embedding: int
    head: int
    small: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


@per_model
def held_bytes(inventory: Inventory, *, tp: int, vocabulary_multiple: int, linear: Format | None = None) -> HeldBytes:
    """What one of `tp` GPUs holds, the layers' matrices as the checkpoint stores them or all in the format `linear`."""
    sums = {"linear": 0, "scales": 0, "embedding": 0, "head": 0, "small": 0}
    for count, tensor in counted(inventory):
        rows, columns, copies = piece(tensor, tp=tp, vocabulary_multiple=vocabulary_multiple)
        form = linear if linear is not None and tensor.linear else tensor.form
        own = count * copies * element_bytes(form, rows, columns)
        scales = count * copies * scale_bytes(form, rows, columns)
        if tensor.linear:
            sums["linear"] += own
            sums["scales"] += scales
        elif tensor.kind in ("embedding", "head"):
            sums[tensor.kind] += own + scales
        else:
            sums["small"] += own + scales
    return HeldBytes(**sums)


PLAIN_FP8 = Format("fp8", 8, "fp8_e4m3")
"""Matrices narrowed by an option: one byte an element, no scales counted."""


def narrowed(weight_dtype: str) -> Format | None:
    """The format that the option `weight_dtype` (auto, bf16, fp8) stores matrices in; None: the checkpoint's."""
    return {"fp8": PLAIN_FP8, "bf16": BF16}.get(weight_dtype)
