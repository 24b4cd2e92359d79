"""The command-line options that the rules read, at SGLang's own defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

WITHOUT_EFFECT = frozenset(
    {
        "ep_size",
        "moe_runner_backend",
        "speculative_draft_model_path",
        "speculative_num_steps",
        "enable_mixed_chunk",
        "trust_remote_code",
        "dtype",
        "quantization",
        "speculative_ngram_max_bfs_breadth",
        "enable_priority_scheduling",
        "prefill_max_requests",
        "disaggregation_transfer_backend",
        "stream_interval",
        "random_seed",
        "load_format",
        "nnodes",
        "host",
        "port",
    }
)
"""Options that do not enter any rule modeled here."""


class Options(NamedTuple):
    """Options of `sglang serve`, named as on the command line with underscores; None and `auto` are unset.

    Sizes in tokens or requests, parallel sizes in GPUs. Source: arg_groups/fields of the release.
    """

    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    attn_dp_size: int = 1
    attn_cp_size: int = 1
    dcp_size: int = 1
    enable_dp_attention: bool = False
    enable_two_batch_overlap: bool = False
    moe_a2a_backend: str = "none"
    deepep_mode: str = "auto"
    disaggregation_mode: str = "null"
    mem_fraction_static: float | None = None
    chunked_prefill_size: int | None = None
    max_prefill_tokens: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    schedule_policy: str | None = None
    schedule_conservativeness: float | None = None
    context_length: int | None = None
    page_size: int | None = None
    kv_cache_dtype: str = "auto"
    attention_backend: str | None = None
    prefill_attention_backend: str | None = None
    decode_attention_backend: str | None = None
    dsa_prefill_backend: str | None = None
    dsa_decode_backend: str | None = None
    linear_attn_backend: str = "triton"
    cuda_graph_max_bs_decode: int | None = None
    cuda_graph_bs_decode: tuple[int, ...] | None = None
    cuda_graph_backend_decode: str | None = None
    cuda_graph_max_bs_prefill: int | None = None
    cuda_graph_bs_prefill: tuple[int, ...] | None = None
    cuda_graph_backend_prefill: str | None = None
    disable_cuda_graph: bool = False
    disable_decode_cuda_graph: bool = False
    disable_prefill_cuda_graph: bool = False
    disable_cuda_graph_padding: bool = False
    speculative_algorithm: str | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_eagle_topk: int | None = None
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False
    swa_full_tokens_ratio: float | None = None
    mamba_full_memory_ratio: float | None = None
    max_mamba_cache_size: int | None = None
    mamba_radix_cache_strategy: str = "auto"
    mamba_ssm_dtype: str | None = None
    language_only: bool = False
    mm_feature_transport: str = "cpu"
    model_path: str = ""

    @classmethod
    def from_flags(cls, flags: Mapping[str, Any]) -> Options:
        """Options from a mapping of flag names without the leading dashes; raises KeyError for an unknown flag."""
        known = cls._fields
        given: dict[str, Any] = {}
        for flag, value in flags.items():
            name = flag.replace("-", "_")
            if name in known:
                given[name] = tuple(value) if isinstance(value, list) else value
            elif name not in WITHOUT_EFFECT:
                raise KeyError(flag)
        return cls(**given)

    @property
    def attention_dp(self) -> int:
        """Attention data parallel size: `--dp-size` counts it together with the older `--enable-dp-attention`."""
        return self.dp_size if self.enable_dp_attention and self.attn_dp_size == 1 else self.attn_dp_size

    @property
    def prefix_cache_off(self) -> bool:
        """Whether the radix cache is off: asked for, or a decode server of a disaggregated pair."""
        return self.disable_radix_cache or self.disaggregation_mode == "decode"

    @property
    def attention_tp(self) -> int:
        """GPUs that attention heads are split over."""
        return max(1, self.tp_size // (self.attention_dp * self.attn_cp_size))
