"""The reader of DeepSeek V4: a window of latent rows in every layer, beside them rows that stand for several tokens."""

from __future__ import annotations

from enginemem.architecture import LayerSpec
from enginemem.hf_config.decoder import norms
from enginemem.hf_config.families import Family
from enginemem.hf_config.fields import MOST_TOKENS, Fields, UnknownArchitecture
from enginemem.hf_config.names import Names
from enginemem.hf_config.parts import Tensors, experts, norm, vector
from enginemem.hf_config.quantization import MODELOPT, MXFP4, NVFP4, read_quantization
from enginemem.hf_config.rules import Quantization, Rule
from enginemem.hf_config.shape import Decoded, Layer, Shape, outer_tensors, read_moe, read_shape
from enginemem.tensors import FP32, Tensor

INDEXED, COARSE = 4, 128
"""Tokens under one row: few, found by an indexer, or many, all of them read."""

_RATIOS = {0: 0, INDEXED: INDEXED, COARSE: COARSE}
_KINDS = {
    "sliding_attention": 0,
    "compressed_sparse_attention": INDEXED,
    "heavily_compressed_attention": COARSE,
}


def read_deepseek_v4(fields: Fields, outer: Fields, family: Family) -> Decoded:
    """DeepSeek V4: experts in every layer, the first ones chosen by a table, and streams of hyper-connections.

    Source rules: models/deepseek_v4 (attention, compressor, nvidia/model) at vLLM 0.32.0.
    """
    shape = read_shape(fields, outer, family)
    ratios = fields.per_layer("compress_ratios", shape.layers, _RATIOS)
    ratios = fields.per_layer("layer_types", shape.layers, _KINDS) if ratios is None else ratios
    if ratios is None:
        fields.problem("compress_ratios", "0, 4 or 128 tokens a row for each layer")
    window = fields.count("sliding_window", high=MOST_TOKENS)
    if fields.count("vision_n_layers", 0, low=0):
        fields.problem("vision_n_layers", "0: the routing of images is not known here")
    moe = read_moe(fields, family)
    if moe is None:
        fields.problem("n_routed_experts", "the number of experts")
    looked_up = fields.count("num_hash_layers", low=0, high=shape.layers)
    own, index = _attention(fields, shape), _indexer(fields, shape)
    streams = fields.count("hc_mult", high=64)
    fields.check()
    around = norms(shape, 2) + _streams(shape, streams)
    width = fields.count("index_head_dim", high=65_536)
    layers = []
    for place, ratio in enumerate(ratios or []):
        found = moe if moe is None or place >= looked_up else moe._replace(correction=False, table=shape.vocabulary)
        tensors = own + (_compressor(shape, ratio, shape.head, "attn.compressor") if ratio else ())
        tensors += index if ratio == INDEXED else ()
        mixed = () if found is None else experts(found, shape.hidden, shape.form, "ffn")
        caches = [LayerSpec("sliding", 1, 1, shape.head, 0, window=window)]
        if ratio:
            key = width if ratio == INDEXED else 0
            caches.append(LayerSpec("compressed", 1, 1, shape.head, 0, index_head=key, tokens=ratio))
        layers.append(Layer(tuple(caches), tensors + around + mixed))
    rows = streams * shape.hidden
    outside = (
        *outer_tensors(shape),
        Tensor("hc_head_fn", "small", streams, rows, form=FP32),
        vector("hc_head_base", streams, FP32),
        vector("hc_head_scale", 1, FP32),
    )
    rope = fields.count("qk_rope_head_dim", high=65_536)
    fields.check()
    return Decoded(shape, layers, outside, moe, shape.layers, rope, latent_rank=shape.head - rope, sinks=True)


def _attention(fields: Fields, shape: Shape) -> Tensors:
    """The projections of every layer: queries over a rank, one row for keys and values, the output in groups."""
    rank, groups = fields.count("q_lora_rank", high=65_536), fields.count("o_groups", high=65_536)
    out = fields.count("o_lora_rank", high=65_536)
    h, heads, form = shape.hidden, shape.heads, shape.form
    if heads * shape.head % groups:
        fields.problem("o_groups", f"a divisor of the {heads * shape.head:,} features of all heads")
    return (
        vector("attn.attn_sink", heads, FP32, split=True, heads=heads),
        # Quantisers name the two matrices down from the hidden size as the one that the engines fuse them to.
        Tensor("attn.fused_wqa_wkv", "attention", rank, h, fused="qkv_a", linear=True, form=form),
        Tensor("attn.fused_wqa_wkv", "attention", shape.head, h, fused="qkv_a", linear=True, form=form),
        norm("attn.q_norm", rank, form),
        norm("attn.kv_norm", shape.head, form),
        Tensor("attn.wq_b", "attention", heads * shape.head, rank, "rows", heads, linear=True, form=form),
        Tensor(
            "attn.wo_a", "attention", groups * out, heads * shape.head // groups, "rows", groups, linear=True, form=form
        ),
        Tensor("attn.wo_b", "attention", h, groups * out, "columns", groups, linear=True, form=form),
    )


def _compressor(shape: Shape, ratio: int, head: int, name: str) -> Tensors:
    """What makes one row of `ratio` tokens, kept in the model's type; rows of few tokens overlap, so they are twice as
    wide before they are joined."""
    width = head * (2 if ratio == INDEXED else 1)
    return (
        Tensor(f"{name}.ape", "small", ratio, width, form=FP32),
        Tensor(f"{name}.wkv", "attention", width, shape.hidden, form=shape.form),
        Tensor(f"{name}.wgate", "attention", width, shape.hidden, form=shape.form),
        norm(f"{name}.norm", head, shape.form),
    )


def _indexer(fields: Fields, shape: Shape) -> Tensors:
    """What finds the rows to read: queries, weights, and a compressor of its own; whole on every GPU."""
    heads, head = fields.count("index_n_heads", high=65_536), fields.count("index_head_dim", high=65_536)
    rank, name = fields.count("q_lora_rank", high=65_536), "attn.indexer"
    return (
        Tensor(f"{name}.wq_b", "indexer", heads * head, rank, linear=True, form=shape.form),
        Tensor(f"{name}.weights_proj", "indexer", heads, shape.hidden, form=shape.form),
        *_compressor(shape, INDEXED, head, f"{name}.compressor"),
    )


def _streams(shape: Shape, streams: int) -> Tensors:
    """What mixes the streams of a layer before attention and before the experts, in 32 bits."""
    mixes = (2 + streams) * streams
    return tuple(
        [
            tensor
            for part in ("attn", "ffn")
            for tensor in (
                Tensor(f"hc_{part}_fn", "small", mixes, streams * shape.hidden, form=FP32),
                vector(f"hc_{part}_base", mixes, FP32),
                vector(f"hc_{part}_scale", 3, FP32),
            )
        ]
    )


def read_quantization_v4(config: Fields, extra: Fields | None) -> Quantization | None:
    """The formats of a DeepSeek V4 checkpoint: blocks of 8 bits, experts as expert_dtype or moe_quant_algo says.

    Source rule: DeepseekV4FP8Config in models/deepseek_v4/quant_config.py at vLLM 0.32.0.
    """
    found = config.inner("quantization_config")
    if found is None or found.values.get("quant_method") not in ("fp8", "deepseek_v4_fp8"):
        return read_quantization(config, extra)
    experts_type = config.text("expert_dtype", "fp4")
    algorithm = found.text("moe_quant_algo", "")
    block = MODELOPT["FP8_PB_WO"]
    if list(found.items("weight_block_size", most=2) or ()) != [block.group_rows, block.group]:
        found.problem("weight_block_size", f"{block.group_rows} and {block.group}")
    if experts_type not in ("fp4", "fp8"):
        config.problem("expert_dtype", "fp4, fp8")
        raise UnknownArchitecture(config.errors)
    if algorithm not in ("", "NVFP4"):
        found.problem("moe_quant_algo", "NVFP4")
        raise UnknownArchitecture(config.errors)
    rules = [Rule(block, None)]
    if experts_type == "fp4":
        narrow = NVFP4 if algorithm else MXFP4
        rules = [Rule(narrow, Names(["ffn.experts"])), Rule(block._replace(scale="e8m0", scale_bits=8), None)]
    return Quantization("fp8", tuple(rules), Names([]))
