"""The public configurations of tests/vectors/configs, with the fields that matter for memory."""

import json
from pathlib import Path
from typing import Any

CONFIGS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parent / "vectors" / "configs" / "configs.json").read_text(encoding="utf-8")
)
REFUSED: dict[str, str] = {}
"""Checkpoints that are refused by name, and the field that the refusal points at."""
UNMODELED = {
    "MiniMaxAI--MiniMax-M3": "MiniMaxM3ForCausalLM",
    "stepfun-ai--Step-3.7-Flash": "Step3p7FlashForCausalLM",
}
"""Checkpoints whose facts are read and whose cache no engine's rules here lay out, and the class that the reason names."""
