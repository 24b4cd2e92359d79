"""Tokens of the KV pool, the request cap and the request table."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.engines.sglang import budget as granted
from enginemem.engines.sglang.layout import Cell, kv_cell, kv_element_bytes, state_bytes, state_slots
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.resolve import Configuration
from enginemem.release import EngineRelease
from enginemem.units import round_up


class Tokens(NamedTuple):
    """Pool sizes in tokens: the full pool, the window pool of a hybrid model, and the rule that split them."""

    full: int
    window: int | None
    rule: str


class PoolProblem(NamedTuple):
    """Why no pool can be built: `no_memory_for_kv`, `pool_too_small`, `window_pool_too_small` or `state_pool_too_small`."""

    error: str
    mem_fraction_static: float
    minimum_fraction_4dp: float | None = None
    suggested_fraction: float | None = None


class Pool(NamedTuple):
    """The KV pool of one scheduler; bytes per GPU, lengths in tokens."""

    error: None
    mem_fraction_static: float
    page_size: int
    kv_element_bytes: int
    kv_budget_bytes: int
    cell_size_bytes: float
    configurator: str
    max_total_num_tokens: int
    swa_max_total_num_tokens: int | None
    max_running_requests: int
    context_len: int
    req_to_token_table_bytes: int
    decode_graph_max_bs: int
    mamba_state_bytes_per_slot: int | None
    max_mamba_cache_size: int | None
    mamba_slots_per_request: int | None


def plain_tokens(budget_bytes: int, *, cell: int, page: int, limit: int | None = None) -> int:
    """Tokens of a pool with one kind of layer, in whole pages, at most `limit` (`--max-total-tokens`)."""
    tokens = budget_bytes // cell // page * page
    return tokens if limit is None or limit >= tokens else limit // page * page


def window_tokens(budget_bytes: int, cell: Cell, *, ratio: float, page: int, limit: int | None) -> Tokens:
    """Full and window tokens of a hybrid model by the ratio rule (HybridSWAPoolConfigurator)."""
    if not cell.full:
        tokens = plain_tokens(budget_bytes, cell=cell.window, page=page, limit=limit)
        return Tokens(tokens, tokens, "HybridSWAPoolConfigurator")
    full = int(budget_bytes // (cell.full + ratio * cell.window))
    if limit is not None:
        full = min(full // page * page, limit)
    full = full // page * page
    return Tokens(full, int(full * ratio) // page * page, "HybridSWAPoolConfigurator")


def own_window(release: EngineRelease, *, window: int, page: int) -> int:
    """Window tokens of its outputs that a request holds at most: eviction waits for an interval, pages go whole
    (ScheduleBatch._swa_eviction_trigger)."""
    return window + release.integer("swa_eviction_interval") + page


def window_tokens_each(release: EngineRelease, *, window: int, page: int) -> int:
    """Window tokens that one long request holds at most: the last window of its prompt, which the prefix cache keeps
    locked as long as it runs, and that of its outputs (SWAComponent.acquire_component_lock)."""
    return round_up(window, page) + own_window(release, window=window, page=page)


def window_cap(
    release: EngineRelease,
    *,
    window: int,
    page: int,
    requests: int,
    chunk: int,
    overlap: bool,
    role: str,
    draft_tokens: int,
) -> int:
    """Window tokens that `requests` running requests can hold at worst, in whole pages (compute_swa_request_cap)."""
    each = window + release.integer("swa_eviction_interval") * draft_tokens + 2 * page
    held = requests * each
    if role == "decode":
        held += (window + page) * decode_role_slots(release, role=role, requests=requests)
    else:
        held += (release.integer("swa_chunks_overlap") if overlap else 1) * chunk + page
    return round_up(held, page)


def capped_tokens(budget_bytes: int, cell: Cell, *, window_pool: int, page: int, limit: int | None) -> Tokens:
    """Full tokens beside a window pool of fixed size (SWARequestCapPoolConfigurator)."""
    full = int((budget_bytes - window_pool * cell.window) // cell.full) // page * page
    if limit is not None and limit < full:
        window_pool, full = min(window_pool, limit), limit // page * page
    return Tokens(full, window_pool, "SWARequestCapPoolConfigurator")


def request_cap(
    release: EngineRelease, *, tokens: int, context: int, requested: int | None, attention_dp: int = 1
) -> int:
    """`max_running_requests` of one scheduler with `tokens` of pool (KVCacheConfigurator.resolve_max_num_reqs)."""
    by_tokens = tokens // release.integer("request_cap_tokens")
    if requested is not None:
        return min(requested // attention_dp, by_tokens)
    estimate = int(tokens / context * release.integer("request_cap_factor"))
    low, high = release.integer("request_cap_low"), release.integer("request_cap_high")
    return min(max(min(estimate, high), low), by_tokens)


def decode_role_slots(release: EngineRelease, *, role: str, requests: int | None) -> int:
    """Rows beside the running requests that a decode server keeps for requests in transfer."""
    if role != "decode" or requests is None or requests > release.integer("decode_role_slots_below"):
        return 0
    return requests * release.integer("decode_role_slots_factor")


def table_bytes(
    release: EngineRelease, *, requests: int, context: int, draft_tokens: int = 0, extra_rows: int = 0
) -> int:
    """Bytes of the request-to-token table on one GPU; it lives in the slack (memory_pool.py ReqToTokenPool)."""
    row = context + release.integer("table_extra_tokens") + draft_tokens
    return (requests + extra_rows + 1) * row * release.integer("table_entry_bytes")


def draft_tokens(release: EngineRelease, options: Options) -> int:
    """Draft tokens a step under speculative decoding, 0 without."""
    if options.speculative_algorithm is None:
        return 0
    if options.speculative_num_draft_tokens is None and options.speculative_algorithm.upper() == "NGRAM":
        return release.integer("ngram_draft_tokens")
    return options.speculative_num_draft_tokens or 0


class States(NamedTuple):
    """A pool of recurrent states: bytes and number of the slots, slots a request takes, GiB left for the KV pool."""

    bytes_each: int
    slots: int
    per_request: int
    rest: float


def state_slots_of(
    release: EngineRelease, model: ModelFacts, options: Options, config: Configuration, *, rest: float
) -> States | None:
    """The pool of recurrent states out of `rest` GiB; None for a model without recurrent layers."""
    if model.linear is None:
        return None
    each = state_bytes(
        release,
        model.linear,
        attention_tp=options.attention_tp,
        pp=options.pp_size,
        ssm_dtype=options.mamba_ssm_dtype,
    )
    per_request = state_slots(
        release,
        radix_cache=not options.prefix_cache_off,
        strategy=config.mamba_radix_cache_strategy,
        overlap=not config.disable_overlap_schedule,
    )
    dp, cap = options.attention_dp, config.max_running_requests
    fixed: int | None = None
    if options.max_mamba_cache_size is not None:
        fixed = options.max_mamba_cache_size // dp
    elif options.prefix_cache_off and cap is not None:
        fixed = cap // dp
    drafts = draft_tokens(release, options)
    spends = drafts and cap is not None and options.disaggregation_mode != "prefill"
    share = options.mamba_full_memory_ratio
    states = granted.state_pool(
        rest,
        bytes_each=each,
        share=release.number("mamba_full_memory_ratio") if share is None else share,
        slots=fixed,
        draft=(drafts, cap // dp, per_request) if spends and cap is not None else None,
    )
    return States(each, states.slots, per_request, states.rest)


def _tokens(
    release: EngineRelease, model: ModelFacts, options: Options, config: Configuration, *, budget: int, cell: Cell
) -> Tokens:
    page, limit, cap = config.page_size, options.max_total_tokens, config.max_running_requests
    if model.window is None:
        return Tokens(plain_tokens(budget, cell=cell.full, page=page, limit=limit), None, "DefaultPoolConfigurator")
    role = options.disaggregation_mode
    chunked = role == "decode" or config.chunked_prefill_size > 0
    if options.prefix_cache_off and cap is not None and chunked and cell.full:
        held = window_cap(
            release,
            window=model.window.tokens,
            page=page,
            requests=cap // options.attention_dp,
            chunk=config.chunked_prefill_size,
            overlap=not config.disable_overlap_schedule,
            role=role,
            draft_tokens=draft_tokens(release, options) or 1,
        )
        return capped_tokens(budget, cell, window_pool=held, page=page, limit=limit)
    return window_tokens(budget, cell, ratio=_ratio(release, options), page=page, limit=limit)


def _ratio(release: EngineRelease, options: Options) -> float:
    ratio = options.swa_full_tokens_ratio
    return release.number("swa_full_tokens_ratio") if ratio is None else ratio


def size_pool(
    release: EngineRelease,
    model: ModelFacts,
    options: Options,
    config: Configuration,
    *,
    before: float,
    after: float,
    capability: tuple[int, int],
) -> Pool | PoolProblem:
    """The pool from the free GiB before and after loading (minimum over the ranks), in the engine's order.

    Raises ValueError for a KV type whose bytes are not modeled.
    """
    if model.compressed is not None:
        raise ValueError("compressed layers have a rule of their own (compressed.py)")
    fraction = config.mem_fraction_static
    element = kv_element_bytes(release, config.kv_cache_dtype)
    if element is None:
        raise ValueError(f"kv_cache_dtype {config.kv_cache_dtype} is not modeled")
    reserved = granted.multimodal_gib(
        release, multimodal=model.vision is not None, transport=options.mm_feature_transport
    )
    rest = granted.budget(before, after, fraction=fraction, multimodal=reserved).rest
    states = state_slots_of(release, model, options, config, rest=rest)
    if states is not None:
        if states.slots <= 0:
            return PoolProblem("state_pool_too_small", fraction)
        rest = states.rest
    if rest <= 0:
        least = granted.no_memory(release, before, after)
        return PoolProblem("no_memory_for_kv", fraction, round(least.minimum_fraction, 4), least.suggested_fraction)
    budget = granted.pool_bytes(rest)
    cell = kv_cell(
        release,
        model,
        options,
        kv_cache_dtype=config.kv_cache_dtype,
        element_bytes=element,
        major=capability[0],
    )
    tokens = _tokens(release, model, options, config, budget=budget, cell=cell)
    if tokens.full <= 0:
        return PoolProblem("pool_too_small", fraction)
    by_ratio = tokens.rule == "HybridSWAPoolConfigurator" and cell.full
    if by_ratio and model.window and (tokens.window or 0) <= model.window.tokens + config.page_size:
        return PoolProblem("window_pool_too_small", fraction)
    context = options.context_length or model.context
    requested, dp = config.max_running_requests, options.attention_dp
    cap = request_cap(release, tokens=tokens.full, context=context, requested=requested, attention_dp=dp)
    if states is not None:
        cap = min(cap, states.slots // states.per_request)
        if cap <= 0:
            return PoolProblem("state_pool_too_small", fraction)
    asked = options.max_running_requests
    role = options.disaggregation_mode
    extra = decode_role_slots(release, role=role, requests=None if asked is None else asked // dp)
    bytes_per_token = cell.full if not cell.window else cell.full + _ratio(release, options) * cell.window
    return Pool(
        error=None,
        mem_fraction_static=fraction,
        page_size=config.page_size,
        kv_element_bytes=element,
        kv_budget_bytes=budget,
        cell_size_bytes=bytes_per_token if cell.full else cell.window,
        configurator=tokens.rule,
        max_total_num_tokens=tokens.full,
        swa_max_total_num_tokens=tokens.window,
        max_running_requests=cap,
        context_len=context,
        req_to_token_table_bytes=table_bytes(
            release, requests=cap, context=context, draft_tokens=draft_tokens(release, options), extra_rows=extra
        ),
        decode_graph_max_bs=config.decode_graph_max_bs,
        mamba_state_bytes_per_slot=None if states is None else states.bytes_each,
        max_mamba_cache_size=None if states is None else states.slots,
        mamba_slots_per_request=None if states is None else states.per_request,
    )
