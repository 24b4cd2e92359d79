"""How many requests the capacity scheduler lets run, and what refuses a request before it is scheduled."""

from __future__ import annotations

from typing import NamedTuple

from enginemem.derivation import Derivation
from enginemem.engines.plan import Binds
from enginemem.engines.tensorrt_llm.resolve import Configuration
from enginemem.release import EngineRelease
from enginemem.units import ceil_div

STATIC_BATCH = "STATIC_BATCH"


class Refused(NamedTuple):
    """A request that the engine answers with an error, and why."""

    reason: str


class Admission(NamedTuple):
    """Output limit after the engine's clip (tokens), blocks reserved for a request, and the closed form."""

    effective_max_new: int
    reserved_blocks: int
    running: int


class Limits(NamedTuple):
    """Requests by each limit, the count that results, and what binds. `by_tokens` is a step's token budget."""

    by_memory: int
    by_cap: int
    by_tokens: int
    running: int
    binds: Binds


def refusal(
    *, prompt: int, max_num_tokens: int, max_seq_len: int, chunked_prefill: bool, tokens_per_block: int
) -> Refused | None:
    """Why a request is never run, or None; lengths in tokens.

    The check of max_num_tokens reads the prompt only. Chunks are whole blocks, all but a prompt's last. Source rules:
    llm.py _check_arguments, base_worker.py, py_executor_creator.py (chunk unit).
    """
    if prompt > max_num_tokens and not chunked_prefill:
        return Refused(
            f"the prompt of {prompt:,} tokens exceeds max_num_tokens ({max_num_tokens:,}) and chunked prefill is off: "
            "HTTP 400; shorten it, raise max_num_tokens or set enable_chunked_prefill"
        )
    if prompt >= max_seq_len:
        return Refused(
            f"the prompt of {prompt:,} tokens leaves no room for an output token in max_seq_len ({max_seq_len:,}); "
            "shorten it or serve a longer max_seq_len"
        )
    if max_num_tokens < min(prompt, tokens_per_block):
        return Refused(
            f"max_num_tokens ({max_num_tokens:,}) is less than one chunk of {tokens_per_block} tokens: "
            "no prompt ever starts"
        )
    return None


def admit(
    *,
    blocks: int,
    prompt: int,
    max_tokens: int | None,
    max_batch_size: int,
    max_seq_len: int,
    max_num_tokens: int,
    chunked_prefill: bool,
    tokens_per_block: int,
) -> Admission | Refused:
    """The closed form for identical requests without shared prefixes under GUARANTEED_NO_EVICT.

    `max_tokens` None stands for the room that the prompt leaves. Source rule: capacityScheduler.cpp
    GuaranteedNoEvictScheduler, kvCacheManager.cpp getRemainingBlocksToCompletion.
    """
    refused = refusal(
        prompt=prompt,
        max_num_tokens=max_num_tokens,
        max_seq_len=max_seq_len,
        chunked_prefill=chunked_prefill,
        tokens_per_block=tokens_per_block,
    )
    if refused is not None:
        return refused
    room = max_seq_len - prompt
    output = room if max_tokens is None else min(max_tokens, room)
    reserved = ceil_div(prompt + output, tokens_per_block)
    return Admission(output, reserved, min(max_batch_size, blocks // reserved))


def policy_problem(config: Configuration, release: EngineRelease) -> str | None:
    """Why the chosen admission policy gives no count, or None."""
    if config.policy not in release.values["modeled_policies"]:
        return (
            f"{config.policy} admits on the next step's blocks and pauses requests when they run out: no published "
            "closed form describes its running count (the pool is unaffected)"
        )
    if config.policy == STATIC_BATCH and config.chunked_prefill:
        return "STATIC_BATCH with chunked prefill: which prompts of a batch start together is not settled"
    return None


def requests_by_tokens(config: Configuration, prompt: int) -> int:
    """Requests that the token budget of a step allows: one token each while they generate.

    A static batch starts in one step, so its whole prompts share that step's tokens.
    """
    return config.max_num_tokens // prompt if config.policy == STATIC_BATCH else config.max_num_tokens


def limits(config: Configuration, *, blocks: int, reserved: int, prompt: int) -> Limits:
    """Running requests by memory, request cap and token budget; on a tie memory goes before cap before tokens."""
    by_memory, by_cap = blocks // reserved, config.max_batch_size
    by_tokens = requests_by_tokens(config, prompt)
    running = min(by_memory, by_cap, by_tokens)
    binds: Binds = "token_budget"
    if running == by_cap:
        binds = "request_cap"
    if by_memory < by_cap and running == by_memory:
        binds = "kv_memory"
    return Limits(by_memory, by_cap, by_tokens, running, binds)


def record(config: Configuration, derivation: Derivation, *, blocks: int, prompt: int, output: int) -> Limits:
    """The steps from the output limit to the running count; `output` is the request's limit after the clip."""
    block = config.tokens_per_block
    reserved = ceil_div(prompt + output, block)
    derivation.add(
        "admission.reserved",
        "Blocks reserved for a request",
        "ceil_div(prompt + output, tokens_per_block)",
        reserved,
        "blocks",
        {"prompt": (prompt, "tokens"), "output": (output, "tokens"), "tokens_per_block": (block, "tokens")},
        "capacity_scheduler",
        "remaining_blocks",
        note="Reserved to completion at the start; a cached prefix gives no discount.",
    )
    found = limits(config, blocks=blocks, reserved=reserved, prompt=prompt)
    derivation.add(
        "admission.by_memory",
        "Requests by KV memory",
        "blocks // reserved",
        found.by_memory,
        "requests",
        {"blocks": (blocks, "blocks"), "reserved": (reserved, "blocks")},
        "capacity_scheduler",
        role="limit",
    )
    static = config.policy == STATIC_BATCH
    derivation.add(
        "admission.by_tokens",
        "Requests by the step's tokens",
        "max_num_tokens // prompt" if static else "max_num_tokens // tokens_each",
        found.by_tokens,
        "requests",
        {
            "max_num_tokens": (config.max_num_tokens, "tokens"),
            **({"prompt": (prompt, "tokens")} if static else {"tokens_each": (1, "tokens")}),
        },
        "micro_batch",
        role="limit",
        note="A static batch starts in one step: its prompts share the step's tokens." if static else None,
    )
    derivation.add(
        "admission.running",
        "Requests running",
        "min(by_memory, max_batch_size, by_tokens)",
        found.running,
        "requests",
        {
            "by_memory": (found.by_memory, "requests"),
            "max_batch_size": (config.max_batch_size, "requests"),
            "by_tokens": (found.by_tokens, "requests"),
        },
        "published_running",
        "capacity_scheduler",
        note="Admission waits for a batch that is empty." if static else "Nothing that runs is ever preempted.",
    )
    return found
