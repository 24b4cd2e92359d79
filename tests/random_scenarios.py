"""Random scenarios that are valid: for the step test and the benchmark. `random.Random(seed)` only, no numpy."""

from __future__ import annotations

import random
from collections.abc import Callable

from enginemem.architecture import load_model, model_ids
from enginemem.hardware import gpu_ids, load_gpu

Draw = Callable[[random.Random], object]

_LENGTHS = (
    1,
    2,
    16,
    31,
    32,
    33,
    100,
    128,
    500,
    1000,
    2000,
    4096,
    8000,
    8192,
    8193,
    32768,
    131071,
    131072,
    10**6,
    10**8,
)


def _length(rng: random.Random, top: int = 10**8) -> int:
    """A length in tokens between 1 and `top`: a round one, or any on a logarithmic scale."""
    if rng.random() < 0.4:
        return min(top, rng.choice(_LENGTHS))
    return max(1, min(top, rng.randrange(1, 2 ** rng.randrange(1, 19))))


def _decimal(low: int, high: int, scale: int = 1000) -> Draw:
    return lambda rng: str(rng.randint(low, high) / scale)


def _one_of(*choices: object) -> Draw:
    return lambda rng: rng.choice(choices)


def _power(low: int, high: int) -> Draw:
    return lambda rng: rng.randrange(2**low, 2**high) if rng.random() < 0.5 else 2 ** rng.randint(low, high)


def _sizes(rng: random.Random) -> list[int]:
    return [rng.randrange(1, 600) for _ in range(rng.randrange(1, 12))]


def _gigabytes(low: int, high: int) -> Draw:
    return lambda rng: f"{rng.randint(low, high) / 100}{rng.choice(('GB', 'GiB'))}"


KNOBS: dict[str, Draw] = {
    "vllm.gpu_memory_utilization": _decimal(300, 1000),
    "vllm.max_num_seqs": _power(0, 13),
    "vllm.max_num_batched_tokens": _power(4, 16),
    "vllm.watermark": _decimal(0, 200),
    "vllm.kv_cache_memory_bytes": _gigabytes(1, 9000),
    "vllm.num_gpu_blocks_override": _power(0, 20),
    "vllm.block_size": _one_of("1", "8", "16", "32", "64", "128", "256"),
    "sglang.mem_fraction_static": _decimal(300, 1000),
    "sglang.chunked_prefill_size": lambda rng: rng.choice((-1, 1, 512, 2048, 4096, 8192, rng.randrange(1, 20000))),
    "sglang.max_running_requests": _power(0, 13),
    "sglang.schedule_conservativeness": _decimal(0, 3000),
    "sglang.page_size": _one_of("1", "16", "32", "64", "128"),
    "sglang.cuda_graph_max_bs": _power(0, 10),
    "tensorrt-llm.free_gpu_memory_fraction": _decimal(100, 1000),
    "tensorrt-llm.max_batch_size": _power(0, 13),
    "tensorrt-llm.max_num_tokens": _power(0, 16),
    "tensorrt-llm.tokens_per_block": _one_of("1", "2", "4", "8", "16", "32", "64", "128"),
    "tensorrt-llm.capacity_scheduler_policy": _one_of("GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"),
    "tensorrt-llm.enable_chunked_prefill": _one_of(True, False),
    "tensorrt-llm.cuda_graph_batch_sizes": _sizes,
    "tensorrt-llm.cuda_graph_padding": _one_of(True, False),
}
"""How to draw each engine knob."""


def _totals(rng: random.Random, gpu: str) -> dict[str, object]:
    """Sometimes a CUDA total or an nvidia-smi total of one's own, never one that contradicts the other."""
    facts = load_gpu(gpu)
    given: dict[str, object] = {}
    if rng.random() < 0.1:
        mib = rng.randrange(6000, 300_000)
        given["cuda_total"] = f"{mib}MiB" if rng.random() < 0.5 else f"{mib // 1024}.{rng.randrange(100):02}GiB"
        given["smi_total"] = f"{mib + 1024 + rng.randrange(4000)}MiB"
    elif facts.smi_total is None and facts.cuda_total is not None and rng.random() < 0.5:
        given["smi_total"] = f"{int(facts.cuda_total) // 2**20 + 500}MiB"
    return given


def random_scenario(rng: random.Random) -> dict[str, object]:
    """The inputs of one valid scenario, ready for `Scenario(**inputs)`; equal states of `rng` give equal inputs."""
    gpu, model = rng.choice(gpu_ids()), rng.choice(model_ids())
    facts = load_model(model)
    sizes = [tp for tp in (1, 2, 4, 8) if facts.tensor_parallel_problem(tp) is None]
    max_tokens = _length(rng)
    inputs: dict[str, object] = {
        "gpu": gpu,
        "model": model,
        "tp": str(rng.choice(sizes)),
        "weight_dtype": rng.choice(("auto", "bf16", "fp8")),
        "kv_dtype": rng.choice(("auto", "auto", "bf16", "fp8", "nvfp4")),
        "prompt": _length(rng),
        "max_tokens": max_tokens,
        "mean_output": min(max_tokens, _length(rng)),
        "shape": rng.choice(("geometric", "fixed", "uniform")),
        **_totals(rng, gpu),
    }
    if rng.random() < 0.7:
        inputs["runtime"] = _gigabytes(0, 900)(rng)
    if rng.random() < 0.3:
        inputs["preload"] = _gigabytes(0, 300)(rng)
    if rng.random() < 0.3:
        inputs["max_model_len"] = _length(rng)
    for key, draw in KNOBS.items():
        if rng.random() < 0.15:
            inputs[key] = draw(rng)
    return _without_contradictions(inputs)


def _without_contradictions(inputs: dict[str, object]) -> dict[str, object]:
    """`inputs` less the knobs that Scenario refuses beside each other."""
    seqs, tokens = inputs.get("vllm.max_num_seqs"), inputs.get("vllm.max_num_batched_tokens")
    if isinstance(seqs, int) and isinstance(tokens, int) and tokens < seqs:
        del inputs["vllm.max_num_batched_tokens"]
    if "vllm.kv_cache_memory_bytes" in inputs:
        inputs.pop("vllm.num_gpu_blocks_override", None)
    return inputs
