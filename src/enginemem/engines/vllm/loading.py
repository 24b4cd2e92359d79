"""The steps of what loading puts on one GPU: parameters, and the buffers that the runtime assumption covers."""

from __future__ import annotations

from enginemem.architecture import Architecture
from enginemem.blocks import uneven_blocks
from enginemem.derivation import Operand
from enginemem.encoder import NARROWED, UNSIZED, sized
from enginemem.engines.vllm.compressed import is_compressed
from enginemem.engines.vllm.run import Run, refused
from enginemem.engines.vllm.vision import encoder_share
from enginemem.engines.vllm.weights import (
    BYTES_16BIT,
    BYTES_FP8,
    BufferRules,
    WeightBytes,
    buffer_bytes,
    latent_copies,
    layer_buffers,
    rotary_bytes,
    weight_bytes,
)
from enginemem.release import EngineRelease

SINK_BYTES = 4
"""Bytes of one attention sink, a 32-bit number."""


def buffer_rules(release: EngineRelease) -> BufferRules:
    """The release's sizes of buffers."""
    return BufferRules(
        rope=release.integer("rope_cache_bytes"),
        rope_wide=release.integer("rope_cache_wide_bytes"),
        scales=release.integer("quant_scale_bytes"),
        normaliser=release.integer("embedding_normaliser_bytes"),
        expert_map=release.integer("expert_map_bytes"),
    )


PACKED_BITS = {"gptq": (4, 8), "awq": (4,)}
"""Bits that the classes of packed whole numbers take (TYPE_MAP in auto_gptq.py and auto_awq.py); GPTQ's symmetric alone."""


def _storage_problem(model: Architecture, *, tp: int) -> str | None:
    """Why the release does not load what the checkpoint stores, None where it does; the method fp8 takes parts of merged
    matrices as they come, whether they end at a scale or not."""
    method = model.quantization
    bits = PACKED_BITS.get(method or "", ())
    for block in model.inventory.kinds if bits else ():
        for tensor in block.tensors:
            form = tensor.form
            if form.element == "int32" and tensor.linear and form.bits not in bits:
                return f"{tensor.name} has {form.bits} bits; its class of {method} takes {' and '.join(map(str, bits))}"
            if form.zero_bits and method == "gptq":
                return f"{tensor.name} has zero points; its class of gptq takes symmetric whole numbers alone"
    return uneven_blocks(model.inventory, tp=tp, merged=method == "compressed-tensors", spreads=method == "fp8")


def record_weights(run: Run, *, linear_bytes: int | None) -> int:
    """Record the parameters on one GPU and the buffers that the runtime assumption has to cover; returns the
    parameter bytes. `linear_bytes` None: the layers' matrices as the checkpoint stores them."""
    model, steps, tp = run.scenario.model, run.steps, run.scenario.tp
    problem = _storage_problem(model, tp=tp) if linear_bytes is None else None
    if problem is not None:
        raise refused(problem)
    multiple = run.release.integer("vocabulary_multiple")
    weights = weight_bytes(model, tp=tp, linear_bytes=linear_bytes, vocabulary_multiple=multiple)
    _record_linear(run, weights, linear_bytes=linear_bytes)
    rows: dict[str, Operand] = {
        "embedding": (weights.embedding, "bytes"),
        "head": (weights.head, "bytes"),
    }
    note = "The head shares the embedding's matrix." if model.tied_embeddings else None
    matrices = 1 if model.tied_embeddings else 2
    held = weights.embedding // (BYTES_16BIT * model.hidden_size)
    expression = "embedding + head"
    if matrices * held * model.hidden_size * BYTES_16BIT == weights.embedding + weights.head:
        expression = "matrices * rows * hidden_size * bytes_each"
        rows = {
            "rows": (held, "rows"),
            "hidden_size": (model.hidden_size, "elements"),
            "bytes_each": (BYTES_16BIT, "bytes"),
            "matrices": (matrices, "matrices"),
        }
    steps.add(
        "weights.vocabulary",
        "Input embedding and output head",
        expression,
        weights.embedding + weights.head,
        "bytes",
        rows,
        "vocabulary",
        role="add",
        note=note,
    )
    _record_small(run, weights.small)
    total, expression = weights.total, "linear + vocabulary + small"
    operands: dict[str, Operand] = {
        "linear": (weights.linear, "bytes"),
        "vocabulary": (weights.embedding + weights.head, "bytes"),
        "small": (weights.small, "bytes"),
    }
    copies = latent_copies(model, tp=tp) if linear_bytes is None else 0
    if copies:
        steps.add(
            "weights.latent_copies",
            "16-bit copies of the projection up from the latent row",
            "copies",
            copies,
            "bytes",
            {"copies": (copies, "bytes")},
            "parameters",
            role="add",
            note="Unpacked after loading, beside the stored matrices.",
        )
        total, expression = total + copies, f"{expression} + latent_copies"
        operands["latent_copies"] = (copies, "bytes")
    sinks = _record_sinks(run)
    if sinks:
        total, expression = total + sinks, f"{expression} + sink_padding"
        operands["sink_padding"] = (sinks, "bytes")
    encoder = _record_encoder(run, narrowed=linear_bytes == BYTES_FP8)
    if encoder:
        total, expression = total + encoder, f"{expression} + vision"
        operands["vision"] = (encoder, "bytes")
    note = UNSIZED if model.vision is not None and not encoder else None
    steps.add("weights.total", "Weights per GPU", expression, total, "bytes", operands, "parameters", note=note)
    _record_buffers(run)
    return total


def _record_sinks(run: Run) -> int:
    """Record the bytes that attention sinks of DeepSeek V4 take beyond the GPU's own heads: the kernels want 64 or 128
    of them, on compute capability 12.x a power of two (`get_padded_num_q_heads`). 0 for other models."""
    model, tp = run.scenario.model, run.scenario.tp
    if not is_compressed(model):
        return 0
    family = (run.scenario.gpu.compute_capability or (0, 0))[0]
    smallest = next((row["smallest_heads"] for row in run.release.tables["compressed_backends"]
                     if row["family"] == family), 0)  # fmt: skip
    heads = model.heads // tp
    padded = max(smallest, 1 << (heads - 1).bit_length())
    value = model.num_layers * (padded - heads) * SINK_BYTES
    run.steps.add(
        "weights.sink_padding",
        "Attention sinks of heads that pad the kernels' own",
        "layers * (padded - heads) * bytes_each",
        value,
        "bytes",
        {
            "layers": (model.num_layers, "layers"),
            "padded": (padded, "heads"),
            "heads": (heads, "heads"),
            "bytes_each": (SINK_BYTES, "bytes"),
        },
        "compressed_backend",
        role="add",
    )
    return value


def _record_encoder(run: Run, *, narrowed: bool) -> int:
    """Record the vision encoder's bytes on one GPU and return them; 0 where there is none or its size is not known."""
    vision, multiple = run.scenario.model.vision, run.release.integer("vocabulary_multiple")
    if vision is None or not sized(vision):
        return 0
    share = encoder_share(vision, tp=run.scenario.tp, vocabulary_multiple=multiple)
    if share.problem is not None:
        raise refused(share.problem)
    spread = "Held whole by every GPU" if share.spread < run.scenario.tp else "Cut over the GPUs by default"
    note = (
        f"{spread}; --language-model-only leaves it out."
        if run.scenario.tp > 1
        else "The option --language-model-only leaves it out."
    )
    run.steps.add(
        "weights.vision",
        "Vision encoder with its projector",
        "cut + copied",
        share.bytes.total,
        "bytes",
        {"cut": (share.bytes.cut, "bytes"), "copied": (share.bytes.copied, "bytes")},
        "vision_weights",
        "vision_cut",
        role="add",
        note=f"{note} {NARROWED}" if narrowed else note,
    )
    return share.bytes.total


def _record_linear(run: Run, weights: WeightBytes, *, linear_bytes: int | None) -> None:
    quantised = linear_bytes is None and run.scenario.model.quantization is not None
    each = BYTES_16BIT if linear_bytes is None else linear_bytes
    operands: dict[str, Operand] = {"parameters": (weights.linear // each, "parameters"), "bytes_each": (each, "bytes")}
    if quantised:
        operands = {"elements": (weights.linear - weights.scales, "bytes"), "scales": (weights.scales, "bytes")}
    note = "FP8: one byte a parameter, scales not counted." if each == BYTES_FP8 else None
    run.steps.add(
        "weights.linear",
        "Matrices of the layers",
        "elements + scales" if quantised else "parameters * bytes_each",
        weights.linear,
        "bytes",
        operands,
        "parameters",
        role="add",
        note=f"Stored as the checkpoint's {run.scenario.model.quantization} quantisation says." if quantised else note,
    )


def _record_small(run: Run, small: int) -> None:
    wide = any(tensor.form.bits != 16 for block in run.scenario.model.inventory.kinds
               for tensor in block.tensors if not tensor.linear)  # fmt: skip
    run.steps.add(
        "weights.small",
        "Norms, biases, routers" if wide or run.scenario.model.experts else "Norms and biases",
        "stored" if wide else "parameters * bytes_each",
        small,
        "bytes",
        {"stored": (small, "bytes")}
        if wide
        else {"parameters": (small // BYTES_16BIT, "parameters"), "bytes_each": (BYTES_16BIT, "bytes")},
        "parameters",
        role="add",
        note="Some of them in 32 bits." if wide else None,
    )


def _record_buffers(run: Run) -> None:
    model, layers = run.scenario.model, run.scenario.model.num_layers
    rules = buffer_rules(run.release)
    caches = rotary_bytes(model, rules)
    others = layer_buffers(model, rules, tp=run.scenario.tp, first=0, last=layers)
    value = caches + others
    plain = buffer_bytes(
        positions=model.max_position,
        rotary_size=model.head_dim,
        element_bytes=rules.rope,
        layers=layers,
        scale_bytes=rules.scales,
    )
    operands: dict[str, Operand] = {
        "positions": (model.max_position, "tokens"),
        "rotary_size": (model.head_dim, "elements"),
        "element": (rules.rope, "bytes"),
        "layers": (layers, "layers"),
        "scales": (rules.scales, "bytes"),
    }
    usual = plain == value
    run.steps.add(
        "weights.buffers",
        "Buffers, part of the runtime assumption",
        "positions * rotary_size * element + layers * scales" if usual else "rotary_caches + others",
        value,
        "bytes",
        operands if usual else {"rotary_caches": (caches, "bytes"), "others": (others, "bytes")},
        "rope_cache",
        "quant_scales",
        note="The engine counts them as loaded; the published budget does not subtract them on their own.",
    )
