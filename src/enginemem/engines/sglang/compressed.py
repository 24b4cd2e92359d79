"""DeepSeek V4: a pool of window rows for the running requests, one of compressed rows for whole contexts, and states.

The window pool and the states are sized by the request cap before the rest goes to compressed rows. Source rule:
model_executor/pool_configurator.py DSV4PoolConfigurator (its cap mode: no --swa-full-tokens-ratio given) at 0.5.22.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from enginemem.derivation import Operand
from enginemem.engines.sglang.model import Compressed, ModelFacts
from enginemem.engines.sglang.pool import Tokens, window_tokens_each
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Run, StopPlan
from enginemem.release import EngineRelease
from enginemem.units import GIB, round_up

FEW, MANY = 4, 128
"""Tokens under one row: few, whose compressor joins two groups and whose rows have an index, or many."""


class CompressedPool(NamedTuple):
    """Bytes per GPU of one token in the window layers and in the compressed ones (floats, as the engine reckons), the
    window pool in tokens, and the bytes of the states that belong to request slots."""

    window_token: float
    token: float
    window: int
    states: int


def row_bytes(release: EngineRelease, *, page: int) -> float:
    """Bytes of one row in pages of `page` rows, padding included (KVLayout.page_bytes)."""
    size = round_up(page * release.integer("compressed_row_bytes"), release.integer("compressed_page_alignment"))
    return size / page


def index_bytes(release: EngineRelease, facts: Compressed) -> int:
    """Bytes of one index key with its scales (get_dsv4_indexer_bytes_per_token)."""
    block, scale = release.integer("index_scale_block"), release.integer("index_scale_bytes")
    return facts.index_head + facts.index_head // block * scale


def rings(release: EngineRelease) -> dict[int, int]:
    """Rows of a compressor's ring by the tokens under one row."""
    return {row["tokens"]: row["rows"] for row in release.tables["compressor_rings"]}


def paged_state_bytes(release: EngineRelease, facts: Compressed) -> int:
    """Bytes of one row of the states that follow the window's pages: keys and scores of two groups, for the rows and
    for the index."""
    return 2 * 2 * (facts.head + facts.index_head) * release.integer("compressed_state_bytes")


def window_pool(release: EngineRelease, *, window: int, page: int, requests: int, chunk: int, overlap: bool) -> int:
    """Tokens of the window pool: what `requests` hold at worst, and the ends of four cached prefixes for each of them
    (_resolve_swa_cap_tokens, compute_swa_request_cap)."""
    held = requests * (window + release.integer("swa_eviction_interval") + 2 * page)
    held += (release.integer("swa_chunks_overlap") if overlap else 1) * chunk + page
    return round_up(held + release.integer("compressed_prefix_tails") * requests * (window + page), page)


def slot_state_bytes(release: EngineRelease, facts: Compressed, *, requests: int) -> int:
    """Bytes of the states that belong to request slots, of rows for many tokens (_get_c128_state_fixed_bytes)."""
    ring = rings(release)[MANY]
    rows = round_up((requests + 1) * ring + ring + 1, MANY)
    return rows * 2 * facts.head * release.integer("compressed_state_bytes") * facts.count(MANY)


def compressed_pool(release: EngineRelease, model: ModelFacts, config: Configuration) -> CompressedPool:
    """The sizes of a server with the configuration's request cap; raises ValueError for a model without such layers."""
    facts, window, requests = model.compressed, model.window, config.max_running_requests
    if facts is None or window is None or requests is None:
        raise ValueError("no compressed layers, no window or no request cap")
    page = config.page_size
    few, many = facts.count(FEW), facts.count(MANY)
    follows = rings(release)[FEW] / page * paged_state_bytes(release, facts) * few
    each_few = row_bytes(release, page=page // FEW) / FEW + index_bytes(release, facts) / FEW
    each_many = row_bytes(release, page=page // MANY) / MANY
    return CompressedPool(
        window_token=row_bytes(release, page=page) * window.layers + follows,
        token=each_few * few + each_many * many,
        window=window_pool(
            release,
            window=window.tokens,
            page=page,
            requests=requests,
            chunk=config.chunked_prefill_size,
            overlap=not config.disable_overlap_schedule,
        ),
        states=slot_state_bytes(release, facts, requests=requests) if many else 0,
    )


def full_tokens(pool: CompressedPool, budget_bytes: int, *, page: int) -> int:
    """Tokens that the compressed rows hold in what states and windows leave, in whole pages; 0 when nothing is left."""
    rest = max(budget_bytes - (pool.states + pool.window * pool.window_token), 0)
    return int(rest / pool.token) // page * page


def record_compressed(run: Run, model: ModelFacts, config: Configuration, *, pool: int) -> Tokens:
    """Record bytes a token, the window pool, the states and the tokens of `pool` bytes; stops the plan when none fit."""
    release, plan, page = run.release, run.plan, config.page_size
    facts, window, requests = model.compressed, model.window, config.max_running_requests
    if facts is None or window is None or requests is None:
        raise ValueError("no compressed layers, no window or no request cap")
    found = compressed_pool(release, model, config)
    _record_bytes(run, facts, found, layers=window.layers, page=page)
    _record_fixed(run, facts, found, config, window=window.tokens, requests=requests)
    tokens = full_tokens(found, pool, page=page)
    run.steps.add(
        "pool.tokens",
        "KV tokens",
        "int(max(pool - (states + window * window_token), 0) / token) // page * page",
        tokens,
        "tokens",
        {
            "pool": (pool, "bytes"),
            "states": (found.states, "bytes"),
            "window": (found.window, "tokens"),
            "window_token": (found.window_token, "bytes"),
            "token": (found.token, "bytes"),
            "page": (page, "tokens"),
        },
        "compressed_pool",
        note="Compressed rows; windows and states have pools of their own.",
    )
    if tokens <= 0:
        fixed = found.states + int(found.window * found.window_token)
        raise StopPlan(
            "does_not_fit",
            f"the window pool of {found.window:,} tokens and the states take {fixed / GIB:.2f} of {pool / GIB:.2f} GiB "
            f"for {requests:,} requests and leave no room for compressed rows: lower sglang.max_running_requests or "
            "raise sglang.mem_fraction_static",
            binds="does_not_fit",
        )
    exact = Fraction(found.token)
    plan.kv_bytes_per_token = exact.numerator if exact.denominator == 1 else exact
    plan.kv_fixed_bytes_per_request = _record_request(run, facts, found, window=window.tokens, page=page)
    return Tokens(tokens, found.window, "DSV4PoolConfigurator")


def _record_bytes(run: Run, facts: Compressed, found: CompressedPool, *, layers: int, page: int) -> None:
    release, steps = run.release, run.steps
    row: Operand = (release.integer("compressed_row_bytes"), "bytes")
    alignment: Operand = (release.integer("compressed_page_alignment"), "bytes")
    pages: Operand = (page, "tokens")
    steps.add(
        "layout.window_token",
        "KV bytes a token in the window layers",
        "round_up(page * row, alignment) / page * layers + ring / page * state * indexed",
        found.window_token,
        "bytes",
        {
            "page": pages,
            "row": row,
            "alignment": alignment,
            "layers": (layers, "layers"),
            "ring": (rings(release)[FEW], "rows a page"),
            "state": (paged_state_bytes(release, facts), "bytes"),
            "indexed": (facts.count(FEW), "layers"),
        },
        "compressed_rows",
        "compressor_rings",
        note="With the states of the compressors of few tokens, which follow the window's pages; whole on every GPU.",
    )
    steps.add(
        "layout.token",
        "KV bytes a token in the compressed layers",
        "(round_up(page // few * row, alignment) / (page // few) / few + index / few) * indexed + "
        "round_up(page // many * row, alignment) / (page // many) / many * others",
        found.token,
        "bytes",
        {
            "page": pages,
            "row": row,
            "alignment": alignment,
            "few": (FEW, "tokens"),
            "index": (index_bytes(release, facts), "bytes"),
            "indexed": (facts.count(FEW), "layers"),
            "many": (MANY, "tokens"),
            "others": (facts.count(MANY), "layers"),
        },
        "compressed_rows",
        "compressed_pool",
        note="A row stands for several tokens.",
    )


def _record_fixed(
    run: Run, facts: Compressed, found: CompressedPool, config: Configuration, *, window: int, requests: int
) -> None:
    release, steps = run.release, run.steps
    cap: Operand = (requests, "requests")
    steps.add(
        "pool.window_tokens",
        "Tokens of the window layers",
        "round_up(requests * (window + interval + 2 * page) + chunks * chunk + page + "
        "tails * requests * (window + page), page)",
        found.window,
        "tokens",
        {
            "requests": cap,
            "window": (window, "tokens"),
            "interval": (release.integer("swa_eviction_interval"), "tokens"),
            "page": (config.page_size, "tokens"),
            "chunks": (1 if config.disable_overlap_schedule else release.integer("swa_chunks_overlap"), "chunks"),
            "chunk": (config.chunked_prefill_size, "tokens"),
            "tails": (release.integer("compressed_prefix_tails"), "prefixes"),
        },
        "swa_cap",
        "compressed_pool",
        role="subtract",
        note="All that the requests may hold, and the ends of cached prefixes.",
    )
    steps.add(
        "pool.states",
        "States of the compressors of many tokens",
        "round_up((requests + 1) * ring + ring + 1, many) * 2 * head * element * layers",
        found.states,
        "bytes",
        {
            "requests": cap,
            "ring": (rings(release)[MANY], "rows"),
            "many": (MANY, "tokens"),
            "head": (facts.head, "elements"),
            "element": (release.integer("compressed_state_bytes"), "bytes"),
            "layers": (facts.count(MANY), "layers"),
        },
        "compressor_rings",
        "compressed_pool",
        role="subtract",
        note="A ring for each request slot, whatever its length.",
    )


def _record_request(run: Run, facts: Compressed, found: CompressedPool, *, window: int, page: int) -> int:
    """Record what each further token of a long request takes and what it holds besides; returns the latter."""
    release, steps = run.release, run.steps
    steps.add(
        "layout.per_token",
        "Each further token of a long request",
        "token",
        found.token,
        "bytes",
        {"token": (found.token, "bytes")},
        "compressed_pool",
        note="Compressed rows and index keys of the whole context.",
    )
    held = window_tokens_each(release, window=window, page=page)
    ring, element = rings(release)[MANY], release.integer("compressed_state_bytes")
    fixed = int(held * found.window_token + ring * 2 * facts.head * element * facts.count(MANY))
    steps.add(
        "layout.per_request",
        "A long request besides, whatever its length",
        "int((round_up(window, page) + window + interval + page) * window_token + ring * 2 * head * element * layers)",
        fixed,
        "bytes",
        {
            "window": (window, "tokens"),
            "interval": (release.integer("swa_eviction_interval"), "tokens"),
            "page": (page, "tokens"),
            "window_token": (found.window_token, "bytes"),
            "ring": (ring, "rows"),
            "head": (facts.head, "elements"),
            "element": (element, "bytes"),
            "layers": (facts.count(MANY), "layers"),
        },
        "window_lock",
        "swa_eviction",
        "compressor_rings",
        note="At most: the windows of prompt and outputs with the states that follow them, and a ring of its slot.",
    )
    return fixed
