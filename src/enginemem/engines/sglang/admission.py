"""What a request may ask for, and how many requests the published rule lets run."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import NamedTuple

from enginemem.release import EngineRelease
from enginemem.units import round_up


@cache
def _exact(value: float) -> Fraction:
    """The decimal that a double of the data file was written as."""
    return Fraction(repr(value))


class TokenRatio(NamedTuple):
    """Share of the remaining max_tokens that a running request is booked at: after idle, and once decayed."""

    init: Fraction
    floor: Fraction


def start_ratio(release: EngineRelease) -> Fraction:
    """The ratio after idle at a conservativeness of 1."""
    return _exact(release.number("init_new_token_ratio"))


def token_ratio(release: EngineRelease, conservativeness: Fraction | int | None) -> TokenRatio:
    """The new-token ratio at a schedule conservativeness (None: the default), exact.

    Source rule: managers/scheduler_components/new_token_ratio_tracker.py NewTokenRatioTracker.from_config.
    """
    init = start_ratio(release)
    if conservativeness is not None:
        init = min(init * conservativeness, Fraction(1))
    return TokenRatio(init, min(init * decay_factor(release), Fraction(1)))


def decay_factor(release: EngineRelease) -> Fraction:
    """The decayed ratio as a share of the ratio after idle."""
    return _exact(release.number("min_new_token_ratio_factor"))


def prompt_limit(release: EngineRelease, *, context: int, tokens: int) -> int:
    """The first prompt length, in tokens, that the scheduler refuses (tp_worker.py get_worker_info, managers/utils.py
    validate_input_length)."""
    margins = release.integer("request_length_margin") + release.integer("input_length_margin")
    return min(context, tokens) - margins


def request_problem(release: EngineRelease, *, prompt: int, max_tokens: int, context: int, tokens: int) -> str | None:
    """Why the server refuses such a request, or None. Lengths in tokens; `tokens` is the KV pool.

    Source rules: managers/tokenizer_manager.py _validate_one_request, then the scheduler's own limit.
    """
    if prompt >= context:
        return f"a prompt of {prompt:,} tokens is not shorter than the context of {context:,}: shorten the prompt"
    if prompt + max_tokens > context:
        return (
            f"prompt and max_tokens together are {prompt + max_tokens:,} tokens, above the context of {context:,}: "
            "lower prompt or max_tokens"
        )
    limit = prompt_limit(release, context=context, tokens=tokens)
    if prompt >= limit:
        return (
            f"a prompt of {prompt:,} tokens reaches the input limit of {limit:,} (context {context:,}, pool {tokens:,})"
        )
    return None


def effective_max_new(*, asked: int, prompt: int, context: int, tokens: int, page: int, margin: int) -> int:
    """max_tokens after the scheduler's clips to the context and to an empty pool (init_req_max_new_tokens)."""
    by_context = min(context, tokens) - margin - prompt - 1
    by_pool = tokens - round_up(prompt, page) - page - 1
    return max(0, min(asked, by_context, by_pool))


def published_running(*, tokens: int, keep: int, prompt: int, booked: int, ratio: Fraction, cap: int) -> int:
    """Running requests by the published rule: 1 + floor((tokens - keep) / (prompt + ratio x booked)), within the cap.

    `keep` is left free for the next request; `booked` is max_tokens as admission clips it. 0 when one request does not
    fit. Source: the published worked comparison.
    """
    price = prompt * ratio.denominator + booked * ratio.numerator  # of one request, in units of 1/denominator
    return max(0, min(cap, 1 + (tokens - keep) * ratio.denominator // price))


def decayed_running(
    *, tokens: int, keep: int, prompt: int, booked: int, mean_output: int, ratio: Fraction, cap: int
) -> int:
    """Running requests by the published rule once the ratio has decayed and requests are mid-flight: each holds half
    its mean output, and the rest of max_tokens is booked at the decayed ratio."""
    den = ratio.denominator
    left = max(0, 2 * booked - mean_output)
    price = (
        2 * prompt + mean_output
    ) * den + left * ratio.numerator  # twice one request's price, times the denominator
    return max(0, min(cap, 1 + 2 * den * (tokens - keep) // price))
