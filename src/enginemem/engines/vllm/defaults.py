"""The engine's defaults for a GPU and usage context, as one record."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.engines.vllm.dispatch import decode_capture_sizes
from enginemem.engines.vllm.layout import max_in_flight_tokens
from enginemem.engines.vllm.resolve import Usage, batch_defaults
from enginemem.release import EngineRelease
from enginemem.units import Exact


class EngineDefaults(NamedTuple):
    """What the engine runs with when the user sets nothing; tokens and requests."""

    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    block_size_before_backend: int
    scheduling_policy: str
    chunked_prefill: bool
    prefix_caching: bool
    async_scheduling: bool
    max_in_flight_tokens: int
    cudagraph_mode: str
    max_cudagraph_capture_size: int
    num_capture_sizes: int


def engine_defaults(
    release: EngineRelease,
    *,
    nvml_total: Exact,
    device_name: str,
    compute_capability: tuple[int, int],
    max_model_len: int,
    class_name: str = "",
    usage: Usage = "api_server",
) -> EngineDefaults:
    """Defaults for a part with `nvml_total` bytes (nvidia-smi's total) and a decoder model of class `class_name`."""
    tokens, requests = batch_defaults(
        release, nvml_total=nvml_total, device_name=device_name, max_model_len=max_model_len, usage=usage
    )
    sizes = decode_capture_sizes(
        release,
        family=compute_capability[0],
        max_num_seqs=requests,
        max_num_batched_tokens=tokens,
        class_name=class_name,
    )
    values = release.values
    return EngineDefaults(
        max_num_seqs=requests,
        max_num_batched_tokens=tokens,
        gpu_memory_utilization=release.number("gpu_memory_utilization"),
        block_size_before_backend=release.integer("default_block_size"),
        scheduling_policy=values["scheduling_policy"],
        chunked_prefill=values["chunked_prefill"],
        prefix_caching=values["prefix_caching"],
        async_scheduling=values["async_scheduling"],
        max_in_flight_tokens=max_in_flight_tokens(
            pipeline_parallel=1,
            max_num_batched_tokens=tokens,
            extra_batches=release.integer("in_flight_extra_batches"),
        ),
        cudagraph_mode=values["cudagraph_mode"],
        max_cudagraph_capture_size=sizes[-1],
        num_capture_sizes=len(sizes),
    )
