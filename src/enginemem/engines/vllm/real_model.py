"""A model class as the engine builds it on every pipeline rank: bytes loaded, defaults, and the KV plan beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from typing import Any, NamedTuple

from enginemem.architecture import Architecture
from enginemem.derivation import NotModeled
from enginemem.engines.vllm.attention import default_block_size, model_backend
from enginemem.engines.vllm.budget import requested_bytes
from enginemem.engines.vllm.costs import merged_rows
from enginemem.engines.vllm.defaults import engine_defaults
from enginemem.engines.vllm.layout import KvGroup, KvRow, kv_groups, max_in_flight_tokens
from enginemem.engines.vllm.length import model_length
from enginemem.engines.vllm.loading import buffer_rules
from enginemem.engines.vllm.pool import KvPool, KvShortage, as_fields, size_kv_cache
from enginemem.engines.vllm.resolve import unscaled_types
from enginemem.engines.vllm.rows import model_rows
from enginemem.engines.vllm.run import not_modeled
from enginemem.engines.vllm.weights import loaded, pipeline_layers
from enginemem.hardware import load_gpu
from enginemem.release import EngineRelease
from enginemem.units import GIB

PARTS = {"H100": "h100-sxm", "H200": "h200-sxm", "B200": "b200"}
INDEXER, STATES = "DEEPSEEK_V32_INDEXER", {"gdn": "GDN_ATTN", "mamba2": "MAMBA2_ATTN", "mamba1": "MAMBA1_ATTN"}
ARGUMENTS = ("kv_cache_dtype", "disable_hybrid_kv_cache_manager", "enable_prefix_caching", "max_model_len")


class Request(NamedTuple):
    """What is built: a part and its memory (bytes), the parallel sizes, experts spread over GPUs or cut, the engine's
    arguments that are not at their defaults, and a block size given from outside (None: the backend's)."""

    gpu: str
    total_bytes: int
    utilization: float
    runtime: int
    tp: int
    pp: int
    whole_experts: bool
    arguments: Mapping[str, Any]
    block_size: int | None = None


def built(release: EngineRelease, model: Architecture, request: Request) -> dict[str, Any]:
    """Bytes by rank, resolved defaults and the KV plan, as nested plain values."""
    unknown = set(request.arguments) - set(ARGUMENTS)
    if unknown:
        raise not_modeled(f"engine arguments {', '.join(sorted(unknown))}")
    gpu = load_gpu(PARTS[request.gpu])
    ranks = loaded(
        model,
        buffer_rules(release),
        tp=request.tp,
        pp=request.pp,
        whole_experts=request.whole_experts,
        vocabulary_multiple=release.integer("vocabulary_multiple"),
    )
    held = [rank.parameter_bytes + rank.buffers for rank in ranks]
    length = request.arguments.get("max_model_len", model_length(model, unscaled_types(release)).default)
    defaults = engine_defaults(
        release,
        nvml_total=gpu.smi_total or gpu.cuda_total or request.total_bytes,
        device_name=gpu.device_name,
        compute_capability=gpu.compute_capability or (0, 0),
        max_model_len=length,
        class_name=model.class_name,
    )
    requested = requested_bytes(request.total_bytes, request.utilization)
    available = floor(requested - max(held) - request.runtime)
    result = {
        "param_bytes_per_rank": [rank.parameter_bytes for rank in ranks],
        "buffer_bytes_per_rank": [rank.buffers for rank in ranks],
        "param_bytes_by_dtype_rank0": dict(ranks[0].parameters),
        "model_loading_GiB_per_rank": [round(size / GIB, 4) for size in held],
        "available_bytes": available,
        **defaults._asdict(),
    }
    plan = _Plan(release, model, request, length, defaults.max_num_batched_tokens, available)
    result["attention_backends"] = plan.backends
    fitting = plan.sized(automatic=False)
    if "error" in fitting:
        result["error_at_default_max_model_len"] = fitting["error"]
        result["expect_with_auto_max_model_len"] = plan.sized(automatic=True)
    else:
        result["expect"] = fitting
    return result


class _Plan:
    def __init__(
        self,
        release: EngineRelease,
        model: Architecture,
        request: Request,
        length: int,
        step_tokens: int,
        available: int,
    ) -> None:
        self.request, self.length, self.available = request, length, available
        given = request.arguments.get("kv_cache_dtype", "auto")
        kv_dtype = (model.kv_cache_dtype or "bf16") if given == "auto" else given
        capability = load_gpu(PARTS[request.gpu]).compute_capability or (0, 0)
        backend = model_backend(release, model, capability=capability, kv_dtype=kv_dtype, block_size=None)
        self.backends = _backends(model, backend)
        self.prefix_caching: bool = request.arguments.get("enable_prefix_caching", True)
        self.hybrid_manager = not request.arguments.get("disable_hybrid_kv_cache_manager", False)
        rows = model_rows(
            model,
            tp=request.tp,
            dtype=kv_dtype,
            block_size=request.block_size or default_block_size(release, backend),
            max_model_len=length,
            cache_mode="align" if self.prefix_caching else "none",
        )
        if isinstance(rows, NotModeled):
            raise not_modeled(rows.reason)
        self.ranks = rank_rows(model, rows, stages=request.pp)
        self.in_flight = max_in_flight_tokens(
            pipeline_parallel=request.pp,
            max_num_batched_tokens=step_tokens,
            extra_batches=release.integer("in_flight_extra_batches"),
        )

    def sized(self, *, automatic: bool) -> dict[str, Any]:
        """The plan at the given length, or the longest that fits; `error` with the engine's figures when none does."""
        got = size_kv_cache(
            ranks=self.ranks,
            available_bytes=self.available,
            max_model_len=self.length,
            in_flight=self.in_flight,
            auto_max_model_len=automatic,
            prefix_caching=self.prefix_caching,
            hybrid_manager=self.hybrid_manager,
        )
        if isinstance(got, KvShortage):
            return {"error": got._asdict()}
        groups = kv_groups(self.ranks, hybrid_manager=self.hybrid_manager)
        return _with_specs(got, groups, self.ranks[0])


def _with_specs(pool: KvPool, groups: Sequence[KvGroup], rank: Sequence[KvRow]) -> dict[str, Any]:
    plan = as_fields(pool)
    counts = {row._replace(n=1): row.n for row in merged_rows(rank)}
    for fields, group in zip(plan["groups"], groups, strict=True):
        several = len(group.rows) > 1
        fields["layer_specs"] = [_spec(row, counts.get(row) if several else None) for row in group.rows]
    return plan


def _spec(row: KvRow, count: int | None) -> dict[str, Any]:
    fields = row._asdict()
    fields["shapes"], fields["dtypes"] = [list(shape) for shape in row.shapes], list(row.dtypes)
    return fields | {"n": count}


def rank_rows(model: Architecture, rows: Sequence[KvRow], *, stages: int) -> list[list[KvRow]]:
    """The rows of each pipeline rank; layers without a cache count where the layers are cut."""
    per_layer: list[list[KvRow]] = []
    source = iter(rows)
    for spec in model.layers:
        own = [] if spec.kind == "none" else [next(source) for _ in range(2 if spec.index_head else 1)]
        per_layer += [[row._replace(n=1) for row in own]] * spec.layers
    ranks, first = [], 0
    for count in pipeline_layers(len(per_layer), stages):
        mine = [row for layer in per_layer[first : first + count] for row in layer]
        # One group holds the rows of latent layers, so their order does not matter; others keep it.
        latent = mine and all(row.kind == "mla" for row in mine)
        ranks.append(merged_rows(mine) if latent else mine)
        first += count
    return ranks


def _backends(model: Architecture, backend: str) -> list[str]:
    """The backends of all layers, recurrent ones and the indexer first."""
    found = []
    for spec in model.layers:
        if spec.index_head and INDEXER not in found:
            found.append(INDEXER)
        mixer = "" if spec.recurrent is None else STATES.get(spec.recurrent.mixer, spec.recurrent.mixer)
        if mixer and mixer not in found:
            found.append(mixer)
    return [*found, backend]
