"""What a configuration class says for fields that public files leave out; a null in the file is not left out.

Only fields that files of the type are known to lack: sizes that make a model (hidden_size, num_hidden_layers,
intermediate_size, experts) always have to be there. Source: `configuration_<model_type>.py` of Transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_POSITIONS, _GROUPS, _WINDOW = "max_position_embeddings", "num_key_value_heads", "sliding_window"


def _of(positions: int, groups: int | None = None, head: int | None = None, **others: Any) -> Mapping[str, Any]:
    found = {_POSITIONS: positions} | others
    if groups is not None:
        found[_GROUPS] = groups
    return found if head is None else found | {"head_dim": head}


CLASS_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "llama": _of(2_048),
    "mistral": _of(131_072, 8, sliding_window=4_096),
    "ministral": _of(131_072, 8, sliding_window=4_096),
    "ministral3": _of(262_144, 8, 128),
    "mixtral": _of(131_072, 8),
    "qwen2": _of(32_768, 32),
    "qwen2_moe": _of(32_768, 16),
    "qwen3": _of(32_768, 32, 128),
    "qwen3_moe": _of(32_768, 4),
    "qwen3_vl_text": _of(128_000, 32, 128),
    "qwen3_vl_moe_text": _of(128_000, 16, 128),
    "qwen3_next": _of(32_768, 2, 256, full_attention_interval=4),
    "qwen3_5_text": _of(32_768, 4, 256, full_attention_interval=4),
    "qwen3_5_moe_text": _of(32_768, 2, 256, full_attention_interval=4),
    "gemma": _of(8_192, 16, 256, num_attention_heads=16, vocab_size=256_000),
    "gemma2": _of(8_192, 4, 256, num_attention_heads=8, vocab_size=256_000, sliding_window=4_096),
    "gemma3_text": _of(131_072, 4, 256, num_attention_heads=8, vocab_size=262_208, sliding_window=4_096),
    "gemma4_text": _of(
        131_072, 4, 256, num_attention_heads=8, vocab_size=262_144, sliding_window=512,
        hidden_size_per_layer_input=256, vocab_size_per_layer_input=262_144,
    ),
    "phi3": _of(4_096, original_max_position_embeddings=4_096),
    "phimoe": _of(131_072, 8),
    "gpt_oss": _of(131_072, 8, 64, sliding_window=128),
    "deepseek_v2": _of(2_048),
    "deepseek_v3": _of(4_096),
    "deepseek_v32": _of(163_840, index_n_heads=64, index_head_dim=128),
    "glm_moe_dsa": _of(202_752, index_n_heads=32, index_head_dim=128),
    "glm": _of(131_072, 2, 128, attention_bias=True),
    "glm4": _of(131_072, 2, 128, attention_bias=True),
    "glm4_moe": _of(131_072, 8),
    "glm4_moe_lite": _of(202_752, first_k_dense_replace=1),
    "minimax_m2": _of(196_608, 8, 128),
    "olmo2": _of(2_048),
    "olmo3": _of(2_048, sliding_window=4_096),
    "olmoe": _of(4_096, 16),
    "cohere": _of(8_192),
    "cohere2": _of(8_192, sliding_window=4_096),
    "smollm3": _of(32_768, 4),
    "granite": _of(2_048),
    "granitemoe": _of(2_048),
    "granitemoehybrid": _of(2_048),
    "falcon_h1": _of(8_192, 8),
    "jamba": _of(262_144, 8),
    "nemotron": _of(4_096, head=128),
    "nemotron_h": _of(4_096, 8),
    "llama4_text": _of(131_072, 8, 128, attention_chunk_size=8_192),
}  # fmt: skip


class WithDefaults(Mapping[str, Any]):
    """The fields of a file, and the class's defaults for those that it lacks; `taken` are the defaults in use."""

    def __init__(self, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self._values, self._defaults = values, defaults
        self.taken: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key in self._values or key not in self._defaults:
            return self._values[key]
        self.taken[key] = self._defaults[key]
        return self._defaults[key]

    def __iter__(self) -> Iterator[str]:
        yield from self._values
        yield from [key for key in self._defaults if key not in self._values]

    def __len__(self) -> int:
        return len(set(self._values) | set(self._defaults))

    @property
    def note(self) -> str:
        """The defaults in use as a sentence; empty without any."""
        parts = [f"{key} {value:,}" if type(value) is int else f"{key} {value}" for key, value in self.taken.items()]
        return f"not in the file, so as the class has it: {', '.join(parts)}" if parts else ""


def with_defaults(values: Mapping[str, Any], *model_types: str) -> WithDefaults:
    """The fields of a file with the defaults of the first of the model types that has any here."""
    found = next((CLASS_DEFAULTS[name] for name in model_types if name in CLASS_DEFAULTS), {})
    return WithDefaults(values, found)
