"""Run vector files against the product: `python tests/conformance.py FILE...`.

A file is told apart by its `set`. Every expected field of every case is compared; each difference is printed as
expected/got, and the last line is `N passed, M failed` (exit status 1 on any failure). An unknown set, a file without
cases and a field that the product cannot produce are failures. This module maps fields to public functions and
holds no arithmetic. Companion files (models, shapes) are looked for beside FILE, then in tests/vectors/.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent / "src"))  # runs from a bare checkout, on any Python at hand

from conformance_sglang import SGLANG_HANDLERS
from conformance_tensorrt_llm import TRT_HANDLERS
from conformance_vllm import VLLM_HANDLERS
from enginemem import Scenario, compare
from enginemem.worked import computed_figures, shared_figures
from vector_runner import Beside, Case, Handlers, Pair, run_files


def worked(case: Case, beside: Beside) -> Pair:
    """The published comparisons, through the same inputs that a person would give."""
    common, given = beside("worked.json")["common_inputs"], case["input"]
    scenario = Scenario(
        model=common["model"],
        cuda_total=f"{common['cuda_total_gib']}GiB",
        smi_total=f"{common['nvidia_smi_capacity_mib']}MiB",
        tp=common["tp"],
        runtime=common["runtime_bytes"],
        preload=common["in_use_before_load_bytes"],
        prompt=given["prompt_tokens"],
        max_tokens=given["max_tokens"],
        mean_output=given["mean_output_tokens"],
        kv_dtype={1: "fp8", 2: "bf16"}[given["kv_element_bytes"]],
    )
    comparison = compare(scenario)
    got = {column.replace("-", "_"): computed_figures(plan) for column, plan in comparison.engines.items()}
    keys = ("kv_bytes_per_token", "mean_context_tokens", "prefill_ms_printed", "engines")
    return {key: case[key] for key in keys}, {**shared_figures(comparison), "engines": got}


HANDLERS: Handlers = {"worked/worked": worked, **VLLM_HANDLERS, **SGLANG_HANDLERS, **TRT_HANDLERS}


if __name__ == "__main__":
    sys.exit(run_files(sys.argv[1:], HANDLERS, companions=ROOT / "vectors"))
