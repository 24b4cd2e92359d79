"""Which attention backend runs, which KV cache types it takes, and the block size that follows.

Source rules: `_get_backend_priorities` in `vllm/platforms/cuda.py`, `AttentionBackend.validate_configuration` and
`Platform.update_block_size_for_backend` at 0.32.0, for dense attention on CUDA.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enginemem.architecture import Architecture
from enginemem.engines.plan import Resolved
from enginemem.engines.vllm.compressed import CACHE_TYPE, compressed_backend, is_compressed
from enginemem.engines.vllm.run import Run, not_modeled, refused
from enginemem.release import EngineRelease
from enginemem.scenario import Scenario

QUANTISED = ("fp8", "nvfp4")
BLOCK_SPARSE = "MINIMAX_M3_SPARSE"
"""The backend of keys and values with an index key beside them; it stands beside the dense one of the other layers."""


def backend_order(release: EngineRelease, *, capability: tuple[int, int]) -> tuple[str, ...]:
    """Backends for dense attention in the order in which they are tried."""
    rows = release.tables["backend_order"]
    row = next((row for row in rows if row["family"] == capability[0]), rows[-1])
    return (row["first"], row["second"], row["third"], row["fourth"])


def _takes_kv(release: EngineRelease, name: str, *, family: int, head_size: int, kv_dtype: str) -> bool:
    if kv_dtype not in QUANTISED:
        return True
    return any(
        row["name"] == name
        and row["kv_dtype"] == kv_dtype
        and row["family"] == family
        and row["head_minimum"] <= head_size <= row["head_maximum"]
        for row in release.tables["quantised_kv"]
    )


def _takes_head(release: EngineRelease, row: Mapping[str, Any], head_size: int) -> bool:
    if row["head_sizes"] is not None:
        return head_size in release.integers(row["head_sizes"])
    inside: bool = row["head_minimum"] <= head_size <= row["head_maximum"]
    return inside and head_size % row["head_multiple"] == 0


def attention_backend(
    release: EngineRelease, *, capability: tuple[int, int], head_size: int, kv_dtype: str, block_size: int | None
) -> str:
    """The backend for dense attention: the first in order that takes the configuration.

    `kv_dtype` is auto, bf16, fp8 or nvfp4; `block_size` in tokens, None when the user gave none. Raises StopPlan when
    the engine finds none, or when its choice is not known here.
    """
    if head_size > release.integer("settled_head_size"):
        raise not_modeled(f"head size {head_size}: the backend depends on whether FlashAttention 4 runs on the part")
    level = capability_level(capability)
    rows = {row["name"]: row for row in release.tables["backends"]}
    for name in backend_order(release, capability=capability):
        row = rows[name]
        if not row["minimum"] <= level <= row["maximum"] or not _takes_head(release, row, head_size):
            continue
        if block_size is not None and block_size % row["block_multiple"]:
            continue
        if _takes_kv(release, name, family=capability[0], head_size=head_size, kv_dtype=kv_dtype):
            if name == "TRITON_ATTN":
                _check_triton(release, level=level, kv_dtype=kv_dtype)
            return name
    raise refused(
        _nothing_fits(release, capability=capability, head_size=head_size, kv_dtype=kv_dtype, block=block_size)
    )


def _check_triton(release: EngineRelease, *, level: int, kv_dtype: str) -> None:
    """Triton is selected for every KV type on every part, then refuses to be built on old ones."""
    fp8, bf16 = release.integer("triton_fp8_capability"), release.integer("bf16_capability")
    if kv_dtype == "fp8" and level < fp8:
        raise refused(f"an fp8 KV cache needs {_at(fp8)} with the Triton backend: choose another KV type")
    if kv_dtype == "bf16" and level < bf16:
        raise refused(f"a bf16 KV cache needs {_at(bf16)}: leave the KV type at auto")


def _at(level: int) -> str:
    return f"compute capability {level // 10}.{level % 10}"


def _nothing_fits(
    release: EngineRelease, *, capability: tuple[int, int], head_size: int, kv_dtype: str, block: int | None
) -> str:
    multiple = min([row["block_multiple"] for row in release.tables["backends"]])
    if block is not None and block % multiple:
        return f"no attention backend takes blocks of {block} tokens: give a block size that {multiple} divides"
    part = f"{capability[0]}.{capability[1]}"
    return (
        f"no attention backend takes a KV cache of type {kv_dtype} at head size {head_size} on compute capability {part}: "
        "choose another KV type"
    )


def default_block_size(release: EngineRelease, backend: str) -> int:
    """Tokens a block when the user gives none: the engine's default unless the backend does not take it.

    Dense backends all take the default; latent-attention ones have sizes of their own.
    """
    if any(row["name"] == backend for row in release.tables["compressed_backends"]):
        return release.integer("compressed_block_size")
    if backend.startswith(BLOCK_SPARSE):
        return release.integer("block_sparse_size")
    for row in release.tables["mla_block_sizes"]:
        if row["name"] == backend:
            size: int = row["tokens"]
            return size
    return release.integer("default_block_size")


def kv_element(scenario: Scenario) -> str:
    """The element type of the KV cache: the user's, else the one that the checkpoint asks for, else the model's
    (`resolve_kv_cache_dtype_string`); DeepSeek V4 has one format of its own (`_resolve_dsv4_kv_cache_dtype`)."""
    if is_compressed(scenario.model):
        return CACHE_TYPE
    given = scenario.text("kv_dtype")
    return (scenario.model.kv_cache_dtype or "bf16") if given == "auto" else given


def model_backend(
    release: EngineRelease, model: Architecture, *, capability: tuple[int, int], kv_dtype: str, block_size: int | None
) -> str:
    """The backend of the model's attention layers; raises StopPlan when it is not known here."""
    if is_compressed(model):
        return compressed_backend(release, capability=capability, kv_dtype=kv_dtype, block_size=block_size)
    attention = [spec for spec in model.layers if spec.kind not in ("recurrent", "none")]
    if any(spec.kind == "mla" for spec in attention):
        sparse = any(spec.index_head for spec in attention)
        return latent_backend(release, capability=capability, kv_dtype=kv_dtype, sparse=sparse)
    if any(spec.index_head for spec in attention):
        _check_block_sparse(release, block_size)
        dense = attention_backend(
            release, capability=capability, head_size=attention[0].head_size, kv_dtype=kv_dtype, block_size=None
        )
        return f"{BLOCK_SPARSE} and {dense}"
    sizes = {size for spec in attention for size in (spec.head_size, spec.v_head_size)}
    family = capability[0]
    if len(sizes) > 1 and not (family in (8, 9) and kv_dtype not in QUANTISED):
        raise not_modeled(
            f"head sizes {' and '.join(map(str, sorted(sizes)))}: which FlashAttention serves them on compute "
            f"capability {family}.{capability[1]} is not known here"
        )
    if len(sizes) > 1:
        # FlashAttention 4 where the part runs it, else Triton: both keep blocks of the default size.
        return "FLASH_ATTN"
    return attention_backend(
        release,
        capability=capability,
        head_size=attention[0].head_size if attention else model.head_dim,
        kv_dtype=kv_dtype,
        block_size=block_size,
    )


def _check_block_sparse(release: EngineRelease, block_size: int | None) -> None:
    only = release.integer("block_sparse_size")
    if block_size is not None and block_size % only:
        raise refused(f"block sparse attention takes blocks of {only} tokens, or multiples: not of {block_size}")


def latent_backend(release: EngineRelease, *, capability: tuple[int, int], kv_dtype: str, sparse: bool) -> str:
    """The backend for latent attention: the row of the release's table for the capability and cache type."""
    for row in release.tables["latent_backends"]:
        if row["family"] == capability[0] and row["sparse"] == sparse and row["quantised"] == (kv_dtype in QUANTISED):
            name: str = row["name"]
            return name
    kind = "sparse latent" if sparse else "latent"
    raise not_modeled(
        f"{kind} attention with KV type {kv_dtype} on compute capability {capability[0]}.{capability[1]}: which backend "
        "serves it is not known here"
    )


def capability_level(capability: tuple[int, int] | None) -> int:
    """Ten times the compute capability, as the engine compares it; 0 when it is not known."""
    major, minor = capability or (0, 0)
    return 10 * major + minor


def check_types(scenario: Scenario, release: EngineRelease) -> None:
    """Raise StopPlan for weights that the part does not take (`check_if_supports_dtype`, `get_min_capability`)."""
    level, dtype = capability_level(scenario.gpu.compute_capability), scenario.text("weight_dtype")
    bf16, fp8 = release.integer("bf16_capability"), release.integer("fp8_weights_capability")
    if dtype == "bf16" and level < bf16:
        raise refused(f"bf16 weights need {_at(bf16)}: leave the weights at auto, which falls back to fp16")
    if dtype == "fp8" and level < fp8:
        raise refused(f"fp8 weights need {_at(fp8)}: leave the weights at auto")


def record_attention(run: Run) -> int:
    """Tokens a block, from the attention backend or the user; raises StopPlan when no backend serves the scenario."""
    scenario, release, plan = run.scenario, run.release, run.plan
    model, given = scenario.model, scenario.integer("vllm.block_size")
    kv_dtype, capability = kv_element(scenario), scenario.gpu.compute_capability or (0, 0)
    own = model.kv_cache_dtype is not None and not is_compressed(model)
    asked = kv_dtype if own else scenario.text("kv_dtype")
    backend = model_backend(release, model, capability=capability, kv_dtype=asked, block_size=given)
    block = default_block_size(release, backend) if given is None else given
    note = f"Attention backend {backend}"
    if any(spec.kind == "recurrent" for spec in model.layers):
        note += "; the recurrent states raise it to the block of the layout"
    if capability_level(capability) < release.integer("bf16_capability"):
        note += "; bf16 falls back to fp16, of the same size, on this part"
    name = "default" if given is None else "given"
    run.steps.add(
        "resolve.block_size",
        "Tokens a block",
        name,
        block,
        "tokens",
        {name: (block, "tokens")},
        "block_size",
        "backend_order",
        note=note + ".",
    )
    plan.page_tokens = block
    plan.resolved["block_size"] = Resolved(block, "default" if given is None else "user")
    plan.resolved["attention_backend"] = Resolved(backend, "derived")
    by_user = scenario.text("kv_dtype") != "auto"
    derived = model.kv_cache_dtype is not None or is_compressed(model)
    shown = kv_dtype if by_user or derived else "auto"
    plan.resolved["kv_cache_dtype"] = Resolved(shown, "user" if by_user else "derived" if derived else "default")
    return block
