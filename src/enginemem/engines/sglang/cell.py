"""Bytes a token and tokens of the pool of one scenario, with their steps."""

from __future__ import annotations

from enginemem.derivation import Operand
from enginemem.engines.sglang.layout import Cell, heads_per_gpu, mla_row, side_index_bytes
from enginemem.engines.sglang.model import ModelFacts
from enginemem.engines.sglang.options import Options
from enginemem.engines.sglang.pool import States, Tokens, plain_tokens, window_tokens, window_tokens_each
from enginemem.engines.sglang.resolve import Configuration
from enginemem.engines.sglang.run import Run


def record_cell(
    run: Run, model: ModelFacts, options: Options, config: Configuration, cell: Cell, *, element: int, major: int
) -> None:
    """The step of the bytes that one token takes in the layers that keep the whole context."""
    operands: dict[str, Operand] = {"layers": (model.full_layers, "layers")}
    note = None
    if model.mla:
        row = mla_row(
            run.release,
            model,
            options,
            kv_cache_dtype=config.kv_cache_dtype,
            element_bytes=element,
            major=major,
        )
        expression = "layers * (row + index)"
        operands |= {"row": (row, "bytes"), "index": (cell.full // max(model.full_layers, 1) - row, "bytes")}
        note = "One latent row, whole on every GPU."
    else:
        heads = heads_per_gpu(model.kv_heads, attention_tp=options.attention_tp)
        expression = "layers * heads * (key + value) * element"
        operands |= {
            "heads": (heads, "KV heads on this GPU"),
            "key": (model.head, "elements"),
            "value": (model.v_head, "elements"),
            "element": (element, "bytes"),
        }
        if model.side_index[0]:
            width = side_index_bytes(run.release, kv_cache_dtype=config.kv_cache_dtype, major=major)
            expression += " + indexed * index * index_element"
            operands |= {
                "indexed": (model.side_index[0], "layers"),
                "index": (model.side_index[1], "elements"),
                "index_element": (width, "bytes"),
            }
            note = "an index key a token beside keys and values, whole on every GPU"
        if model.window is None and any(spec.kind == "sliding" for spec in run.scenario.model.layers):
            note = "Sliding-window layers keep the whole context: this class has no window pool."
    run.steps.add("layout.token", "KV bytes per token", expression, cell.full, "bytes", operands, "cell", note=note)
    if model.window is not None:
        run.steps.add(
            "layout.window_token",
            "KV bytes per token in the window layers",
            "layers * layer",
            cell.window,
            "bytes",
            {
                "layers": (model.window.layers, "layers"),
                "layer": (cell.window // max(model.window.layers, 1), "bytes"),
            },
            "cell",
        )


def record_tokens(run: Run, model: ModelFacts, cell: Cell, *, pool: int, page: int) -> Tokens:
    """Tokens of the pool, and of the window layers' pool where the class has one."""
    operands: dict[str, Operand] = {
        "pool": (pool, "bytes"),
        "token": (cell.full, "bytes"),
        "page": (page, "tokens"),
    }
    if model.window is None:
        tokens = plain_tokens(pool, cell=cell.full, page=page)
        run.steps.add(
            "pool.tokens", "KV tokens per replica", "pool // token // page * page", tokens, "tokens", operands, "tokens"
        )
        return Tokens(tokens, None, "DefaultPoolConfigurator")
    ratio = run.release.number("swa_full_tokens_ratio")
    found = window_tokens(pool, cell, ratio=ratio, page=page, limit=None)
    operands |= {"window_token": (cell.window, "bytes"), "ratio": (ratio, "")}
    run.steps.add(
        "pool.tokens",
        "KV tokens per replica",
        "int(pool // (token + ratio * window_token)) // page * page",
        found.full,
        "tokens",
        operands,
        "tokens",
        note="Layers that keep the whole context; window layers have a pool of their own.",
    )
    run.steps.add(
        "pool.window_tokens",
        "Tokens of the window layers",
        "int(tokens * ratio) // page * page",
        found.window,
        "tokens",
        {"tokens": (found.full, "tokens"), "ratio": (ratio, ""), "page": (page, "tokens")},
        "tokens",
    )
    return found


def record_parameters(run: Run, model: ModelFacts, cell: Cell, states: States | None, *, page: int) -> int:
    """Record what each further token of a long request takes, and what it holds besides, whatever its length: tokens of
    its windows and slots of recurrent states; returns the latter in bytes."""
    run.steps.add(
        "layout.per_token",
        "Each further token of a long request",
        "token",
        cell.full,
        "bytes",
        {"token": (cell.full, "bytes")},
        "cell",
        note="Layers that keep the whole context only." if cell.window or states is not None else None,
    )
    terms, sources, fixed = [], ["cell"], 0
    operands: dict[str, Operand] = {}
    if model.window is not None:
        held = window_tokens_each(run.release, window=model.window.tokens, page=page)
        interval = run.release.integer("swa_eviction_interval")
        operands |= {
            "window": (model.window.tokens, "tokens"),
            "interval": (interval, "tokens"),
            "page": (page, "tokens"),
            "window_token": (cell.window, "bytes"),
        }
        terms.append("(round_up(window, page) + window + interval + page) * window_token")
        sources += ["window_lock", "swa_eviction"]
        fixed += held * cell.window
    if states is not None:
        operands |= {"slots": (states.per_request, "slots"), "state": (states.bytes_each, "bytes")}
        terms.append("slots * state")
        sources.append("mamba_cache")
        fixed += states.per_request * states.bytes_each
    run.steps.add(
        "layout.per_request",
        "A long request besides, whatever its length",
        " + ".join(terms) or "nothing",
        fixed,
        "bytes",
        operands or {"nothing": (0, "bytes")},
        *sources,
        note="At most: the prompt's last window stays locked in the prefix cache, and behind the window of the outputs "
        "tokens are evicted once an interval of them has gathered."
        if model.window is not None
        else None,
    )
    return fixed
