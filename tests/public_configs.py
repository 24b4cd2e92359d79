"""The public configurations of tests/vectors/configs, with the fields that matter for memory."""

import json
from pathlib import Path
from typing import Any

CONFIGS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parent / "vectors" / "configs" / "configs.json").read_text(encoding="utf-8")
)
REFUSED = {
    "MiniMaxAI--MiniMax-M3": "config.model_type",
    "deepseek-ai--DeepSeek-V4-Flash": "config.model_type",
    "deepseek-ai--DeepSeek-V4-Pro": "config.model_type",
    "moonshotai--Kimi-K3": "config.model_type",
    "nvidia--DeepSeek-V4-Flash-NVFP4": "config.model_type",
    "stepfun-ai--Step-3.7-Flash": "config.model_type",
}
"""Checkpoints that are refused by name, and the field that the refusal points at."""
