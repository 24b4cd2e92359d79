"""How a checkpoint stores its matrices: `quantization_config` or `hf_quant_config.json`, as rules by tensor name.

A rule says which matrices it targets and which it leaves alone; what no rule reaches stays in the model's own type.
Methods that are not known here are refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from enginemem.hf_config.fields import Fields, UnknownArchitecture
from enginemem.hf_config.names import MOST_WILD, Budget, Names
from enginemem.hf_config.rules import Quantization, Rule
from enginemem.inputs import FieldError
from enginemem.tensors import Format

FP8 = Format("fp8", 8, "fp8_e4m3", tensor_bytes=4)
FP8_ROWS = Format("fp8_rows", 8, "fp8_e4m3", row_scale_bits=32)
INT8_ROWS = Format("int8", 8, "int8", row_scale_bits=32)
NVFP4 = Format("nvfp4", 4, "fp4", "fp8_e4m3", group=16, scale_bits=8, tensor_bytes=8)
MXFP4 = Format("mxfp4", 4, "fp4", "e8m0", group=32, scale_bits=8)
MXFP8 = Format("mxfp8", 8, "fp8_e4m3", "e8m0", group=32, scale_bits=8)
MODELOPT = {
    "FP8": FP8,
    "NVFP4": NVFP4,
    "W4A16_NVFP4": NVFP4,
    "W4A8_NVFP4_FP8": NVFP4,
    "MXFP8": MXFP8,
    "FP8_PB_WO": Format("fp8_block", 8, "fp8_e4m3", group=128, group_rows=128, scale_bits=32),
    "FP8_PER_CHANNEL_PER_TOKEN": FP8_ROWS,
}
SPARSE = ("marlin-24", "sparse-24-bitmask", "sparse-bitmask")
"""Formats of compressed-tensors that leave out zeros; vLLM 0.32.0 has no support for them any more."""
_LONGEST = 64
METHODS = ("fp8", "compressed-tensors", "modelopt", "mxfp4", "awq", "gptq", "fbgemm_fp8", "modelopt_fp4")


def read_quantization(config: Fields, extra: Fields | None) -> Quantization | None:
    """The checkpoint's quantisation, from the configuration (also a nested one) or its `hf_quant_config.json`."""
    found = stated(config, extra)
    if found is not None:
        return _of(found)
    if extra is None:
        return None
    inner = extra.inner("quantization") or extra
    return _modelopt(inner)


def stated(config: Fields, extra: Fields | None) -> Fields | None:
    """The configuration's own `quantization_config`, which counts in place of a file beside it.

    Older checkpoints of several ModelOpt formats keep the formats by layer in the file alone: then the file counts.
    Source rule: get_quant_config in model_loader/weight_utils.py at vLLM 0.32.0.
    """
    found = config.inner("quantization_config")
    for nested in ("text_config", "llm_config"):
        inner = config.inner(nested) if found is None else None
        found = found or (inner.inner("quantization_config") if inner is not None else None)
    # Where older compressed checkpoints keep it; both engines look there last.
    found = found or config.inner("compression_config")
    if found is None or extra is None or found.values.get("quant_algo") != "MIXED_PRECISION":
        return found
    return found if found.given("quantized_layers") else None


def _of(fields: Fields) -> Quantization:
    method = fields.values.get("quant_method")
    if isinstance(method, str) and len(method) < _LONGEST:
        method = method.lower().replace("compressed_tensors", "compressed-tensors")
    if method is None and (fields.given("quant_algo") or fields.given("producer")):
        return _modelopt(fields)
    if not isinstance(method, str) or method not in METHODS:
        fields.problem("quant_method", ", ".join(METHODS))
        raise UnknownArchitecture(fields.errors)
    if method in ("modelopt", "modelopt_fp4"):
        return _modelopt(fields)
    if method == "compressed-tensors":
        return _compressed(fields)
    if method == "mxfp4":
        # The method knows experts alone; other matrices stay as they are, listed or not (Mxfp4Config).
        return Quantization(method, (Rule(MXFP4, Names(["mlp.experts"])),), _names(fields, "modules_to_not_convert"))
    if method in ("awq", "gptq"):
        return _grouped(fields, method)
    return _fp8(fields, method)


def _names(fields: Fields, *keys: str) -> Names:
    patterns: list[str] = []
    for key in keys:
        for entry in fields.items(key, most=200_000) or ():
            if isinstance(entry, str):
                patterns.append(entry)
            else:
                fields.problem(key, "a list of names", entry)
                break
    key = fields.first(*keys)
    return Names(patterns, f"{fields.path}.{key}")


def _fp8(fields: Fields, method: str) -> Quantization:
    if fields.given("moe_quant_algo") or fields.given("quantized_layers"):
        fields.problem("quant_method", "fp8 without mixed layers; several formats come with modelopt")
        raise UnknownArchitecture(fields.errors)
    form = FP8_ROWS if method == "fbgemm_fp8" else FP8
    if fields.given("weight_block_size"):
        form = _blocks(fields, "weight_block_size")
    elif fields.text("activation_scheme", "dynamic") == "static":
        form = FP8._replace(tensor_bytes=8)
    ignored = _names(fields, "modules_to_not_convert", "ignored_layers")
    return Quantization(method, (Rule(form, None),), ignored)


def _blocks(fields: Fields, name: str) -> Format:
    """8 bits with a scale for each block of rows and columns; blocks of 128 where the field is missing."""
    block = fields.items(name, most=2) if fields.given(name) else (128, 128)
    sizes = [size for size in block or () if type(size) is int and 0 < size <= 65_536]
    if len(sizes) != 2:
        fields.problem(name, "two whole numbers from 1 to 65,536")
        sizes = [128, 128]
    return Format("fp8_block", 8, "fp8_e4m3", group=sizes[1], group_rows=sizes[0], scale_bits=32)


def _grouped(fields: Fields, method: str) -> Quantization:
    bits = fields.count(fields.first("bits", "w_bit"), low=2, high=8)
    group = fields.count(fields.first("group_size", "q_group_size"), low=-1, high=65_536)
    zeros = bits if method == "awq" or not fields.flag("sym", True) else 0
    form = _packed(bits, group, zeros)
    if method == "awq":
        return Quantization(method, (Rule(form, None),), _names(fields, "modules_to_not_convert"))
    return _gptq(fields, form)


def _gptq(fields: Fields, form: Format) -> Quantization:
    """GPTQ: modules that `dynamic` leaves alone (`-:`) or stores otherwise, a head where `lm_head` says so, and
    otherwise the modules that the file lists, or all.

    Source rules: AutoGPTQConfig in quantization/auto_gptq.py and get_dynamic_override in utils/gptq_utils.py at vLLM
    0.32.0.
    """
    rules, left, budget = [], [], Budget()
    changes = fields.inner("dynamic") or Fields({}, f"{fields.path}.dynamic", fields.errors)
    for key in list(changes.values)[:MOST_WILD]:
        own = changes.inner(key) if isinstance(key, str) else None
        if own is None:
            continue
        if key.startswith("-:"):
            left.append("re:" + key[2:])
            continue
        bits = own.count("bits", form.bits, low=2, high=8)
        group = own.count("group_size", form.group or -1, low=-1, high=65_536)
        symmetric = own.flag("sym", not form.zero_bits)
        rules.append(Rule(_packed(bits, group, 0 if symmetric else bits),
                          Names(["re:" + key.removeprefix("+:")], changes.path, budget), linear=True))  # fmt: skip
    if fields.flag("lm_head", False):
        rules.append(Rule(form, Names(["lm_head"])))
    names = _listed(fields, "modules_in_block_to_quantize")
    listed = Names(names, f"{fields.path}.modules_in_block_to_quantize", budget) if names else None
    rules.append(Rule(form, listed, linear=True))
    return Quantization("gptq", tuple(rules), Names(left, changes.path))


def _listed(fields: Fields, name: str) -> list[str]:
    """The names of a list, or of the lists in it."""
    names: list[str] = []
    for entry in fields.items(name) or ():
        own = [inner for inner in (entry if isinstance(entry, (list, tuple)) else (entry,)) if isinstance(inner, str)]
        if len(names) + len(own) > MOST_WILD:
            fields.problem(name, f"at most {MOST_WILD:,} names")
            return []
        names += own
    return names


def _packed(bits: int, group: int, zeros: int) -> Format:
    """Whole numbers of a few bits, packed, with a 16-bit scale and a zero point for each group, or for each row."""
    if group > 0:
        return Format(f"int{bits}", bits, "int32", "bf16", group=group, scale_bits=16, zero_bits=zeros)
    return Format(f"int{bits}", bits, "int32", "bf16", row_scale_bits=16 + zeros)


def _compressed(fields: Fields) -> Quantization:
    rules, budget = [], Budget()
    sparsity = fields.inner("sparsity_config")
    for place in (fields, *([sparsity] if sparsity is not None else [])):
        if place.text("format", "dense") in SPARSE:
            place.problem("format", "one that stores every element: sparse matrices are not known here")
    for group in _groups(fields):
        weights = group.inner("weights")
        if weights is None:
            group.problem("weights", "an object that says how weights are stored")
            continue
        form = _weights_form(weights, group.text("format", fields.text("format", "")))
        rules += _targeted(group, form, budget)
    # A module's name counts before the class of its layer, whatever the order of the groups (find_matched_target).
    rules.sort(key=lambda rule: rule.targets is None)
    scheme = fields.inner("kv_cache_scheme")
    kv_cache = None if scheme is None else _kv_scheme(scheme)
    return Quantization("compressed-tensors", tuple(rules), _names(fields, "ignore"), kv_cache)


def _groups(fields: Fields) -> Sequence[Fields]:
    groups = fields.inner("config_groups")
    if groups is None:
        fields.problem("config_groups", "an object with a group for each format")
        return []
    found = [groups.inner(name) for name in list(groups.values)[:64] if isinstance(name, str)]
    return [group for group in found if group is not None]


def _targeted(group: Fields, form: Format, budget: Budget) -> list[Rule]:
    """The rules of a group: by the names that it lists, and for all linear layers where it lists their class."""
    entries = [entry for entry in group.items("targets", most=200_000) or () if isinstance(entry, str)]
    names = [entry for entry in entries if entry != "Linear"]
    rules = [Rule(form, Names(names, f"{group.path}.targets", budget))] if names else []
    return rules if names and "Linear" not in entries else [*rules, Rule(form, None)]


def _weights_form(weights: Fields, layout: str) -> Format:
    bits, kind = weights.count("num_bits", low=2, high=16), weights.text("type", "int")
    group = weights.optional("group_size", low=-1, high=65_536) or 0
    strategy = weights.text("strategy", "group" if group > 0 else "tensor")
    if kind == "float" and bits == 4:
        return MXFP4 if "mxfp4" in layout or group == 32 else NVFP4
    if kind == "float" and bits == 8 and strategy == "block":
        return _blocks(weights, "block_structure")
    if kind == "float" and bits == 8 and strategy == "group":
        if group != MXFP8.group:
            weights.problem("group_size", f"{MXFP8.group}, the group of MXFP8, or another strategy")
        return MXFP8
    if kind == "float" and bits == 8:
        return FP8_ROWS if strategy == "channel" else FP8
    if kind == "int" and bits == 8 and group <= 0:
        return INT8_ROWS
    if kind == "int" and bits in (4, 8) and group > 0:
        zeros = 0 if weights.flag("symmetric", True) else bits
        return Format(f"int{bits}", bits, "int32", "bf16", group=group, scale_bits=16, zero_bits=zeros)
    if kind == "int" and bits == 4:
        return Format("int4", 4, "int32", "bf16", row_scale_bits=16)
    weights.problem("num_bits", "4 or 8 bits, int or float")
    return INT8_ROWS


def _kv_scheme(scheme: Fields) -> str | None:
    bits, kind = scheme.count("num_bits", low=4, high=16), scheme.text("type", "float")
    if bits == 8 and kind == "float":
        return "fp8"
    if bits == 4 and kind == "float":
        return "nvfp4"
    scheme.problem("num_bits", "8 or 4 bits, float")
    return None


def _algorithm(fields: Fields) -> Format | None:
    name = fields.text("quant_algo", "")
    if name and name not in MODELOPT:
        fields.problem("quant_algo", ", ".join(MODELOPT))
        raise UnknownArchitecture(fields.errors)
    return MODELOPT.get(name)


def _modelopt(fields: Fields) -> Quantization:
    rules: list[Rule] = []
    listed = fields.inner("quantized_layers")
    if listed is not None:
        by_form: dict[Format, list[str]] = {}
        for name in list(listed.values)[:200_000]:
            layer = listed.inner(name) if isinstance(name, str) else None
            form = None if layer is None else _algorithm(layer)
            if form is not None:
                by_form.setdefault(form, []).append(name)
        budget = Budget()
        rules = [Rule(form, Names(names, listed.path, budget)) for form, names in by_form.items()]
    elif fields.text("quant_algo", "") != "MIXED_PRECISION":
        form = _algorithm(fields)
        if form is None:
            fields.problem("quant_algo", ", ".join(MODELOPT))
            raise UnknownArchitecture(fields.errors)
        rules = [Rule(form, None)]
    else:
        fields.errors.append(FieldError(f"{fields.path}.quantized_layers", "a missing field", "the layers' formats"))
    return Quantization("modelopt", tuple(rules), _names(fields, "ignore", "exclude_modules"), _modelopt_kv(fields))


def _modelopt_kv(fields: Fields) -> str | None:
    scheme = fields.values.get("kv_cache_scheme", fields.values.get("kv_cache_quant_algo"))
    if scheme is None:
        return None
    if isinstance(scheme, str):
        known = {"FP8": "fp8", "NVFP4": "nvfp4", "NONE": None}
        if scheme.upper() not in known:
            fields.problem(fields.first("kv_cache_scheme", "kv_cache_quant_algo"), ", ".join(known))
        return known.get(scheme.upper())
    inner = fields.inner("kv_cache_scheme")
    return None if inner is None else _kv_scheme(inner)
