"""The command that starts each engine with the scenario's settings, and nothing but what differs from its defaults."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from enginemem.inputs import InputValue
from enginemem.release import EngineRelease
from enginemem.scenario import PLAN_INPUTS, Scenario


class Launch(NamedTuple):
    """A shell command, several lines where the engine wants a file beside it, and what the command cannot say."""

    command: str
    notes: tuple[str, ...]


_START = {
    "vllm": ("vllm", "serve", "{model}"),
    "sglang": ("sglang", "serve", "--model-path", "{model}"),
    "tensorrt-llm": ("trtllm-serve", "{model}"),
}
_EXTRA_FILE = "engine-options.yaml"
_EXTRA_FLAG = "--extra_llm_api_options"
_KV_NAMES: Mapping[str, Mapping[str, str | None]] = {
    "vllm": {"bf16": "bfloat16", "fp8": "fp8", "nvfp4": "nvfp4"},
    "sglang": {"bf16": "bf16", "fp8": "fp8_e4m3", "nvfp4": "nvfp4"},
    "tensorrt-llm": {"bf16": None, "fp8": "fp8", "nvfp4": "nvfp4"},
}
_WEIGHT_NAMES = {"vllm": "fp8_per_tensor", "sglang": "fp8"}
"""Quantisation at load. vLLM 0.32.0 still takes `fp8` for a 16-bit checkpoint, with a warning, as fp8_per_tensor
(model_loader/weight_utils.py, get_quant_config)."""
_IN_SECTION = {"free_gpu_memory_fraction": "kv_cache_config"}
"""Flags that set a key of a section of the file: the file overwrites what flags say, a section as a whole, so they go
into it once the file has that section (trtllm-serve: get_llm_args, update_llm_args_with_extra_dict)."""
_FOLDER = "./model"
_OWN_NAMED = "The configuration calls its model so. Serve the checkpoint that the configuration belongs to."
_OWN_NAMELESS = f"In place of {_FOLDER}: the folder or hub id of the model that the configuration belongs to."
_CHECKPOINT = "Not in this command: the FP8 weights. Serve a checkpoint that was quantised to FP8 instead."
_QUANTISED = (
    "Not in this command: the {asked} weights. The checkpoint is quantised already ({method}): serve another one, "
    "or leave the weights at auto."
)
_KV_OF_CHECKPOINT = (
    "Not in this command: the {asked} KV cache. {name} takes the type that the checkpoint asks for, {kv}."
)


def _settings(scenario: Scenario, release: EngineRelease) -> tuple[dict[str, InputValue], list[str]]:
    """The engine's option names with the values to set, and the notes."""
    settings: dict[str, InputValue] = {}
    notes: list[str] = []
    if scenario.tp > 1:
        settings["tp"] = scenario.tp
    _set_types(scenario, release, settings, notes)
    if scenario.values["max_model_len"] is not None:
        settings["max_model_len"] = scenario.values["max_model_len"]
    for field in PLAN_INPUTS:
        value = scenario.values[field.key]
        if field.section == release.engine and value is not None:
            if field.kind == "quantity" and isinstance(value, Fraction):
                value = int(value)  # engines take whole bytes
            settings[field.key.split(".", 1)[1]] = value
    return settings, notes


def _set_types(scenario: Scenario, release: EngineRelease, settings: dict[str, InputValue], notes: list[str]) -> None:
    """The element types of weights and KV cache: options where the engine converts at load, notes where it does not.

    vLLM and SGLang quantise the linear layers of a 16-bit checkpoint to FP8; a checkpoint that states a method of its
    own keeps it.
    """
    weights, kv, model = scenario.text("weight_dtype"), scenario.text("kv_dtype"), scenario.model
    if weights != "auto" and model.quantization is not None:
        asked = "FP8" if weights == "fp8" else "16-bit"
        notes.append(_QUANTISED.format(asked=asked, method=model.quantization))
    elif weights == "fp8":
        if release.engine in _WEIGHT_NAMES:
            settings["weight_dtype"] = _WEIGHT_NAMES[release.engine]
        else:
            notes.append(_CHECKPOINT)
    name = _KV_NAMES[release.engine].get(kv)
    if name is not None:
        settings["kv_dtype"] = name
    elif kv != "auto" and model.kv_cache_dtype not in (None, kv):
        notes.append(_KV_OF_CHECKPOINT.format(asked="16-bit", name=release.name, kv=model.kv_cache_dtype))


def _plain(value: InputValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return str(float(value))
    if isinstance(value, tuple):
        return "[" + ", ".join([str(item) for item in value]) + "]"
    return str(value)


def launch(scenario: Scenario, release: EngineRelease) -> Launch:
    """The command for one engine. Flags come from the release's own option names; keys of a configuration file
    (`kv_cache_config.tokens_per_block`) go into a small file that the command writes first.

    Raises KeyError when the release's data names no option for a setting.
    """
    settings, notes = _settings(scenario, release)
    if scenario.has_own_model:
        notes.append(_OWN_NAMED if scenario.model.hub_id else _OWN_NAMELESS)
    words = [part.format(model=scenario.model.hub_id or _FOLDER) for part in _START[release.engine]]
    tree: dict[str, dict[str, str] | str] = {}
    sections = {release.options[name].rpartition(".")[0] for name in settings}
    for name, value in settings.items():
        option = release.options[name]
        if option.startswith("-") and name in _IN_SECTION and _IN_SECTION[name] in sections:
            _put(tree, f"{_IN_SECTION[name]}.{name}", _plain(value))
        elif option.startswith("-"):
            words += _flag(option, value)
        else:
            _put(tree, option, _plain(value))
    command = " ".join([shlex.quote(word) for word in words])
    if tree:
        command += f" {_EXTRA_FLAG} {_EXTRA_FILE}"
        command = f"cat > {_EXTRA_FILE} <<'EOF'\n{_yaml(tree)}EOF\n{command}"
    return Launch(command, tuple(notes))


def _flag(option: str, value: InputValue) -> list[str]:
    """The words of one flag. A switch that is on is the bare flag; one that is off is the engines' own default."""
    if isinstance(value, bool):
        return [option] if value else []
    if isinstance(value, tuple):
        return [option, *[str(item) for item in value]]
    return [option, _plain(value)]


def _put(tree: dict[str, dict[str, str] | str], dotted: str, value: str) -> None:
    section, _, leaf = dotted.rpartition(".")
    if not section:
        tree[leaf] = value
        return
    branch = tree.setdefault(section, {})
    if isinstance(branch, dict):
        branch[leaf] = value


def _yaml(tree: Mapping[str, Mapping[str, str] | str]) -> str:
    lines: list[str] = []
    for name, branch in tree.items():
        if isinstance(branch, str):
            lines.append(f"{name}: {branch}")
        else:
            lines.append(f"{name}:")
            lines += [f"  {leaf}: {value}" for leaf, value in branch.items()]
    return "\n".join([*lines, ""])
