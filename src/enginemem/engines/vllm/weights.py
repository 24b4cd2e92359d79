"""Bytes of parameters and buffers on one GPU.

The published budget subtracts parameters only; what the engine counts as loaded also holds buffers (rotary caches and
quantisation scales), which belong to the runtime assumption here. Source rules: `pad_vocab_size`, `get_pp_indices`,
`RotaryEmbedding` and `set_default_quant_scales` at 0.32.0; parameter bytes agree with measured models to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from enginemem.architecture import Architecture
from enginemem.blocks import spread
from enginemem.engines.vllm.length import rope_positions
from enginemem.memo import per_model
from enginemem.tensors import (
    BF16,
    PLAIN_FP8,
    Block,
    Format,
    Piece,
    Tensor,
    blocks_between,
    element_bytes,
    piece,
    scale_bytes,
)
from enginemem.units import round_up

BYTES_16BIT, BYTES_FP8 = 2, 1


class WeightBytes(NamedTuple):
    """Parameter bytes on one GPU: matrices of the layers with their scales, input embedding, output head, and the small
    tensors that no quantisation touches (norms, biases, routers)."""

    linear: int
    embedding: int
    head: int
    small: int
    scales: int = 0
    """The part of `linear` that scales and zero points take."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.linear + self.embedding + self.head + self.small


class Loaded(NamedTuple):
    """What loading puts on the first GPU of one pipeline rank: parameter bytes by element type, and buffers."""

    parameters: Mapping[str, int]
    buffers: int

    @property
    def parameter_bytes(self) -> int:
        """All parameters."""
        return sum(self.parameters.values())


def pipeline_layers(layers: int, stages: int) -> list[int]:
    """Layers of each pipeline rank: the surplus goes to the last ranks but one, backwards (`get_pp_indices`)."""
    counts = [layers // stages] * stages
    for index in range(2, layers % stages + 2):
        counts[-index] += 1
    return counts


def padded(tensor: Tensor, own: Piece, pads: tuple[int, int]) -> Piece:
    """A piece of an expert, or of its bias, as the fused kernels of MXFP4 experts store it: features rounded up to
    multiples for the (intermediate, hidden) size (`mxfp4_round_up_hidden_size_and_intermediate_size`)."""
    if ".experts." not in tensor.name:
        return own
    inner, hidden = pads
    down = "down_proj" in tensor.name
    rows = round_up(own.rows, hidden if down else inner)
    columns = own.columns if own.columns == 1 else round_up(own.columns, inner if down else hidden)
    return Piece(rows, columns, own.copies)


def _narrowed(tensor: Tensor, linear_bytes: int | None) -> Tensor:
    if linear_bytes is None or not tensor.linear:
        return tensor
    return tensor._replace(form=PLAIN_FP8 if linear_bytes == BYTES_FP8 else BF16)


def stored(
    tensors: Sequence[Tensor], *, tp: int, vocabulary_multiple: int, whole_experts: bool, pads: tuple[int, int]
) -> Iterable[tuple[Tensor, int, int]]:
    """(tensor, element bytes, scale bytes) of a layer's tensors on one GPU; the scales of matrices that the engine
    fuses stand with the last of them, since blocks of scales run across."""
    open_rows: dict[tuple[str, Format, int, int], int] = {}
    micro = any(tensor.form.name == "mxfp4" for tensor in tensors)
    for tensor in tensors:
        own = piece(tensor, tp=tp, vocabulary_multiple=vocabulary_multiple, whole_experts=whole_experts)
        if micro:
            own = padded(tensor, own, pads)
        form = spread(tensor, own, tp=tp)
        scales = scale_bytes(form, own.rows, own.columns)
        if tensor.fused and form.group_rows > 1:
            key = (tensor.fused, form, own.columns, own.copies)
            before = open_rows.get(key, 0)
            open_rows[key] = before + own.rows
            scales = scale_bytes(form, before + own.rows, own.columns)
            scales -= scale_bytes(form, before, own.columns)
        yield tensor, element_bytes(tensor.form, own.rows, own.columns) * own.copies, scales * own.copies


PACKED = ("fp4", "e8m0")
"""Element types that the engine keeps as plain bytes."""

PADS = (128, 256)
"""Multiples that the Marlin and TensorRT-LLM kernels pad MXFP4 experts to: (intermediate size, hidden size)."""


@per_model
def weight_bytes(
    model: Architecture, *, tp: int, linear_bytes: int | None = None, vocabulary_multiple: int
) -> WeightBytes:
    """Parameter bytes on one of `tp` GPUs, the matrices of the layers as the checkpoint stores them or, with
    `linear_bytes`, at so many bytes a parameter.

    Embedding, head, norms and biases stay 16-bit; the vocabulary is padded to `vocabulary_multiple` before the split.
    """
    inventory = model.inventory
    linear = scaled = small = embedding = head = 0
    for block in (Block(1, inventory.outer), *inventory.kinds):
        tensors = [_narrowed(tensor, linear_bytes) for tensor in block.tensors]
        for tensor, own, scales in stored(
            tensors, tp=tp, vocabulary_multiple=vocabulary_multiple, whole_experts=False, pads=PADS
        ):
            count = block.layers * (own + scales)
            if tensor.kind == "embedding":
                embedding += count
            elif tensor.kind == "head":
                head += count
            elif tensor.linear:
                linear, scaled = linear + count, scaled + block.layers * scales
            else:
                small += count
    return WeightBytes(linear, embedding, head, small, scaled)


def buffer_bytes(*, positions: int, rotary_size: int, element_bytes: int, layers: int, scale_bytes: int) -> int:
    """Bytes of buffers that loading adds on one GPU: a cosine and sine cache of `positions` rows of `rotary_size`
    elements, and the quantisation scales of each attention layer. Neither is split over GPUs."""
    return positions * rotary_size * element_bytes + layers * scale_bytes


class BufferRules(NamedTuple):
    """The release's sizes, bytes: a rotary element (of gpt-oss too), the scales of one attention layer, the embedding
    normaliser of Gemma, and an entry of the map of experts."""

    rope: int
    rope_wide: int
    scales: int
    normaliser: int
    expert_map: int


@per_model
def rotary_bytes(model: Architecture, rules: BufferRules) -> int:
    """Bytes of the rotary caches; each rank holds all of them, since layers of every kind lie on it (DeepSeek V4:
    `build_deepseek_v4_rope`)."""
    wide = model.model_type in ("gpt_oss", "deepseek_v4")
    element = rules.rope_wide if wide else rules.rope
    if model.model_type == "deepseek_v4":
        # One cache for the layers that compress, stretched where the configuration says so, one for the others.
        kinds = {spec.kind for spec in model.layers}
        rope = model.ropes[0]
        plain = rope.positions * rope.width * element
        return plain + (rope_positions(rope) * rope.width * element if "compressed" in kinds else 0)
    caches = {(rope_positions(rope), rope.width, rope.part == "indexer", rope.type) for rope in model.ropes}
    return sum([positions * width * element for positions, width, _, _ in caches])


@per_model
def layer_buffers(
    model: Architecture, rules: BufferRules, *, tp: int, first: int, last: int, whole_experts: bool = False
) -> int:
    """Bytes of the other buffers on a rank that holds the layers from `first` up to, but without, `last`."""
    total = at = 0
    for spec in model.layers:
        count = max(min(at + spec.layers, last) - max(at, first), 0)
        at += spec.layers
        if spec.kind not in ("recurrent", "none") and model.model_type != "deepseek_v4":
            total += count * rules.scales
        elif spec.recurrent is not None and spec.recurrent.mixer == "mamba2":
            # A view of the convolution's weight, counted although it takes no memory of its own.
            state = spec.recurrent
            groups = max(1, state.groups // tp)
            channels = state.heads * state.rows // tp + 2 * groups * state.group_width
            total += count * channels * state.kernel * BYTES_16BIT
    if whole_experts and model.experts is not None:
        blocks = blocks_between(model.inventory.blocks, first, last)
        layers = [block.layers for block in blocks if any(tensor.kind == "experts" for tensor in block.tensors)]
        total += sum(layers) * model.experts.total * rules.expert_map
    if model.family in ("Gemma 2", "Gemma 3") and first == 0:
        total += rules.normaliser
    return total


def loaded(
    model: Architecture, rules: BufferRules, *, tp: int, pp: int, whole_experts: bool, vocabulary_multiple: int
) -> list[Loaded]:
    """Parameters by element type and buffers on the first GPU of each pipeline rank.

    The first rank holds the embedding, the last the norm and the head; a tied head is a copy there when they differ.
    """
    result, first = [], 0
    for rank, count in enumerate(pipeline_layers(model.num_layers, pp)):
        last = first + count
        outer = [tensor for tensor in model.inventory.outer if _on_rank(tensor, rank, pp, tied=model.tied_embeddings)]
        bytes_by_type: dict[str, int] = {}
        for block in (Block(1, tuple(outer)), *blocks_between(model.inventory.blocks, first, last)):
            for tensor, own, scales in stored(
                block.tensors, tp=tp, vocabulary_multiple=vocabulary_multiple, whole_experts=whole_experts, pads=PADS
            ):
                for element, size in ((tensor.form.element, own), (tensor.form.scale, scales)):
                    if size:
                        kept = "uint8" if element in PACKED else element
                        bytes_by_type[kept] = bytes_by_type.get(kept, 0) + block.layers * size
        others = layer_buffers(model, rules, tp=tp, first=first, last=last, whole_experts=whole_experts)
        result.append(Loaded(bytes_by_type, rotary_bytes(model, rules) + others))
        first = last
    return result


def _on_rank(tensor: Tensor, rank: int, stages: int, *, tied: bool) -> bool:
    if tensor.kind == "embedding":
        return rank == 0 or (tied and rank == stages - 1 and tensor.name == "embed_tokens")
    return rank == stages - 1


@per_model
def latent_copies(model: Architecture, *, tp: int) -> int:
    """Bytes of W_UK and W_UV, which quantised latent attention unpacks into 16 bits after loading, beside the stored
    projection (`process_weights_after_loading` in mla_attention.py)."""
    total = 0
    for block in model.inventory.kinds:
        for tensor in block.tensors:
            if tensor.name.endswith(".kv_b_proj") and tensor.form.bits != 8 * BYTES_16BIT:
                own = piece(tensor, tp=tp, vocabulary_multiple=1)
                total += block.layers * own.rows * own.columns * BYTES_16BIT
    return total
