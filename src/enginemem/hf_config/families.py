"""The families that are known here: model types, classes, and the traits that their configuration leaves unsaid."""

from __future__ import annotations

from typing import Literal, NamedTuple

Said = Literal["yes", "no", "field"]
"""Whether a family has a part always, never, or as the field of the configuration says."""


class Family(NamedTuple):
    """What the classes of a family have in common.

    `reader` names the reader of the family (READERS in readers.py). `biases` are those of the query, key and value
    projections, `output_bias` of the output one; both read `attention_bias` where `field`. `query_norm` is head, full, or
    empty; `norms` the norms of the hidden size in a layer; `tied` the default of tie_word_embeddings; `windows` the
    default pattern of window layers: none, all (where sliding_window is set), listed (in layer_types), second (every
    second layer slides, the first does) or a number n (every n-th layer is full). `shared_gate` gates the shared expert.
    `verified` is False where no public checkpoint's configuration was at hand. `unmodeled` says why no engine's rules
    here lay out the cache; `foreign` are classes that stand in public configurations and that none of the pinned
    releases registers.
    """

    name: str
    classes: tuple[str, ...]
    reader: str = "decoder"
    biases: Said = "no"
    output_bias: Said = "no"
    query_norm: str = ""
    norms: int = 2
    norm_bias: bool = False
    tied: bool = False
    windows: str = "none"
    moe: bool = False
    shared_gate: bool = False
    correction: Said = "no"
    gated: bool = True
    embedding_scale: bool = False
    verified: bool = True
    unmodeled: str = ""
    foreign: tuple[str, ...] = ()


_DEEPSEEK = ("DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM")
_LLAMA = Family(
    "Llama", ("LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM", "AquilaForCausalLM"),
    biases="field", output_bias="field",
)  # fmt: skip
_QWEN3 = Family(
    "Qwen3", ("Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration"), biases="field", query_norm="head"
)  # fmt: skip
_QWEN3_MOE = _QWEN3._replace(
    name="Qwen3-MoE", classes=("Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration"), moe=True
)
_LATENT = Family("DeepSeek", _DEEPSEEK, "latent", moe=True, correction="field")
_GLM_DSA = _LATENT._replace(name="GLM-5", classes=("GlmMoeDsaForCausalLM",), correction="yes")
_KIMI = _LATENT._replace(name="Kimi K2", classes=(*_DEEPSEEK, "KimiK2ForCausalLM", "KimiK25ForConditionalGeneration"))
_GDN = Family("Qwen3-Next", ("Qwen3NextForCausalLM",), "gdn", query_norm="head", moe=True)
_QWEN35 = _GDN._replace(name="Qwen3.5", classes=("Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"), moe=False)
_QWEN35_MOE = _GDN._replace(name="Qwen3.5-MoE", classes=("Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"))
_GEMMA2 = Family(
    "Gemma 2", ("Gemma2ForCausalLM",), biases="field", output_bias="field", norms=4, tied=True, windows="second",
    embedding_scale=True,
)  # fmt: skip
_GEMMA3 = _GEMMA2._replace(
    name="Gemma 3", classes=("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"), query_norm="head", windows="6"
)
_GEMMA4 = _GEMMA3._replace(
    name="Gemma 4", classes=("Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"), reader="gemma4"
)
_LLAMA4 = Family(
    "Llama 4", ("Llama4ForConditionalGeneration", "Llama4ForCausalLM"), "llama4", "field", "field", moe=True
)
_GLM4_MOE = Family(
    "GLM-4.5", ("Glm4MoeForCausalLM",), biases="field", query_norm="glm", moe=True, correction="yes", verified=False
)
_GLM4 = Family("GLM-4", ("Glm4ForCausalLM",), biases="field", norms=4, verified=False)
_MINIMAX_M3 = Family(
    "MiniMax M3",
    ("MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3ForCausalLM"),
    "minimax_m3",
    moe=True,
    correction="field",
    foreign=("MiniMaxM3ForCausalLM",),
)
_STEP = Family(
    "Step 3.5",
    ("Step3p5ForCausalLM", "Step3p7ForConditionalGeneration", "Step3p7FlashForCausalLM"),
    "step",
    biases="field",
    windows="listed",
    moe=True,
    foreign=("Step3p7FlashForCausalLM",),
)
_NEMOTRON_H = Family("Nemotron-H", ("NemotronHForCausalLM",), "nemotron", moe=True, gated=False)

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": Family("Mistral", ("MistralForCausalLM",), windows="all"),
    "ministral3": Family("Ministral", ("Ministral3ForCausalLM", "MistralForCausalLM"), windows="all", verified=False),
    "ministral": Family("Ministral", ("MinistralForCausalLM", "MistralForCausalLM"), windows="all", verified=False),
    "mistral3": Family("Mistral", ("Mistral3ForConditionalGeneration",), windows="all", verified=False),
    "mixtral": Family("Mixtral", ("MixtralForCausalLM",), windows="all", moe=True),
    "qwen2": Family("Qwen2", ("Qwen2ForCausalLM",), biases="yes"),
    "qwen2_moe": Family("Qwen2-MoE", ("Qwen2MoeForCausalLM",), biases="yes", moe=True, shared_gate=True, verified=False),
    "qwen2_vl": Family("Qwen2-VL", ("Qwen2VLForConditionalGeneration",), biases="yes", verified=False),
    "qwen2_5_vl": Family("Qwen2.5-VL", ("Qwen2_5_VLForConditionalGeneration",), biases="yes", verified=False),
    "qwen3": _QWEN3,
    "qwen3_vl": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_moe": _QWEN3_MOE,
    "qwen3_next": _GDN,
    "qwen3_5": _QWEN35,
    "qwen3_5_text": _QWEN35,
    "qwen3_5_moe": _QWEN35_MOE,
    "qwen3_5_moe_text": _QWEN35_MOE,
    "gemma": _GEMMA2._replace(name="Gemma", classes=("GemmaForCausalLM",), norms=2, windows="none", verified=False),
    "gemma2": _GEMMA2,
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "gemma4": _GEMMA4,
    "gemma4_text": _GEMMA4,
    "phi3": Family("Phi", ("Phi3ForCausalLM",), windows="all"),
    "phimoe": Family(
        "Phi-MoE", ("PhiMoEForCausalLM", "PhimoeForCausalLM"), biases="field", output_bias="field", norm_bias=True,
        windows="ignored", moe=True,
    ),
    "gpt_oss": Family("gpt-oss", ("GptOssForCausalLM",), "gpt_oss", "yes", "yes", windows="second", moe=True),
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "deepseek_v32": _LATENT._replace(name="DeepSeek V3.2"),
    "kimi_k2": _KIMI,
    "kimi_k25": _KIMI,
    "glm_moe_dsa": _GLM_DSA,
    "glm4_moe": _GLM4_MOE,
    "glm4v_moe": _GLM4_MOE._replace(name="GLM-4.5V", classes=("Glm4vMoeForConditionalGeneration",)),
    "glm4_moe_lite": _LATENT._replace(
        name="GLM-4.7 Flash", classes=("Glm4MoeLiteForCausalLM",), correction="yes", verified=False
    ),
    "glm": Family("GLM-4 9B", ("GlmForCausalLM",), biases="field", verified=False),
    "glm4": _GLM4,
    "glm4v": _GLM4._replace(name="GLM-4.1V", classes=("Glm4vForConditionalGeneration",)),
    "minimax_m2": Family(
        "MiniMax M2", ("MiniMaxM2ForCausalLM",), query_norm="full", moe=True, correction="field"
    ),
    "mimo": Family("MiMo", ("MiMoForCausalLM",), biases="yes"),
    "mimo_v2_flash": Family("MiMo V2", ("MiMoV2FlashForCausalLM",), "mimo_v2", "field", moe=True, correction="yes"),
    "olmo2": Family("OLMo 2", ("Olmo2ForCausalLM",), query_norm="full", verified=False),
    "olmoe": Family("OLMoE", ("OlmoeForCausalLM",), biases="field", query_norm="full", moe=True, verified=False),
    "olmo3": Family("OLMo 3", ("Olmo3ForCausalLM",), query_norm="full", windows="4"),
    "cohere": Family(
        "Command R", ("CohereForCausalLM",), biases="field", output_bias="field", norms=1, tied=True,
        query_norm="cohere", verified=False,
    ),
    "cohere2": Family(
        "Command R7B and A", ("Cohere2ForCausalLM",), biases="field", output_bias="field", norms=1, tied=True,
        windows="4", verified=False,
    ),
    "smollm3": _LLAMA._replace(name="SmolLM3", classes=("SmolLM3ForCausalLM",), tied=True, verified=False),
    "granite": _LLAMA._replace(name="Granite", classes=("GraniteForCausalLM",), verified=False),
    "granitemoe": _LLAMA._replace(
        name="Granite MoE", classes=("GraniteMoeForCausalLM",), moe=True, verified=False
    ),
    "granitemoehybrid": Family(
        "Granite 4", ("GraniteMoeHybridForCausalLM",), "granite", "field", "field", moe=True, verified=False
    ),
    "falcon_h1": Family("Falcon-H1", ("FalconH1ForCausalLM",), "falcon", "field", "field", verified=False),
    "jamba": Family("Jamba", ("JambaForCausalLM",), "jamba", moe=True, verified=False),
    "kimi_linear": Family(
        "Kimi Linear", ("KimiLinearForCausalLM",), "kda", moe=True, correction="yes", verified=False
    ),
    "kimi_k3": Family("Kimi K3", ("KimiK3ForConditionalGeneration",), "kda", moe=True, correction="yes"),
    "deepseek_v4": _LATENT._replace(
        name="DeepSeek V4",
        classes=("DeepseekV4ForCausalLM",),
        reader="deepseek_v4",
    ),
    "minimax_m3": _MINIMAX_M3,
    "minimax_m3_text": _MINIMAX_M3,
    "minimax_m3_vl": _MINIMAX_M3,
    "minimax_m3_vl_text": _MINIMAX_M3,
    "step3p5": _STEP,
    "step3p7": _STEP._replace(name="Step 3.7"),
    "nemotron_h": _NEMOTRON_H,
    "nemotron": Family(
        "Nemotron", ("NemotronForCausalLM",), biases="field", output_bias="field", norm_bias=True, gated=False,
        verified=False,
    ),
    "nemotron-nas": Family("Llama-Nemotron", ("DeciLMForCausalLM",), "nas", "field", "field"),
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
}  # fmt: skip
"""Families by `model_type`."""
