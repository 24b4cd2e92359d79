"""Running requests in the long run under an endless queue: a law derived from the admission rule.

Admission keeps the booked tokens B = sum of (KV held + r x output still allowed) near the pool less one request. After
a finish B falls; one pass then admits, each newcomer booked in full while the pass lasts and at r afterwards. So B
wanders in a corridor as wide as one fully booked request, and the mean count is (corridor's middle) / (mean booking),
less the requests that finished and are not replaced yet. Few requests make whole steps, which a walk over the counts
follows. The mean of a running request's output is length-biased: long outputs are in flight for longer.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from enginemem.engines.plan import SteadyState
from enginemem.engines.sglang.burst import burst_size
from enginemem.release import EngineRelease
from enginemem.traffic import OutputMoments, Shape, power
from enginemem.units import ceil_div, round_up

_EXP_STEPS = 1024
_NEVER = 1e-12
_RETRACTING = "booking corridor between the ratio that a retraction leaves and the floor"


def _decay(x: float) -> float:
    """About e^-x for x >= 0, from products alone: the same digits on every Python."""
    return 0.0 if x >= 64 else power(1 - x / _EXP_STEPS, _EXP_STEPS)


def _tail(z: float) -> float:
    """About the upper tail of the normal distribution beyond `z` standard deviations."""
    if z < 0:
        return 1 - _tail(-z)
    if z > 5:
        return 0.0
    e = _decay(1.5976 * z + 0.07056 * z * z * z)
    return e / (1 + e)


class Corridor(NamedTuple):
    """The law's parts, in tokens: what admission may book (`target`), the mean booking of a running request, the lower
    edge of the corridor against the target and its width; and the requests that are finished but not replaced."""

    target: float
    booking: float
    lower: float
    width: float
    missing: float


def corridor(
    pool: int,
    page: int,
    prompt: int,
    max_new: int,
    mean: float,
    pairs: float,
    ratio: float,
    chunk: int,
    clip: int,
    train_lag: float,
) -> Corridor:
    """The corridor of booked tokens; `mean` and `pairs` are the moments of the output, `ratio` the share booked."""
    whole, pages = min(max_new, clip), round_up(prompt, page)
    target = float(pool - (prompt + whole + page))
    progress = pairs / mean
    left = min(max_new - progress, clip)
    booking = prompt + progress + (page - 1) / 2 + ratio * left
    width = float(pages + page + whole)
    unbooked = width - pages - ratio * whole
    prompts_a_pass = chunk / pages if chunk > 0 else math.inf
    count = max(target / booking, 0.0)
    lower = missing = 0.0
    for _ in range(4):  # the corridor depends on the finish rate, and that on the count: a few rounds settle it
        rate = count / mean  # finishes a decode step
        none = _decay(rate)
        together = rate / (1 - none) if rate > 1e-6 else 1.0
        filled = together if together <= prompts_a_pass else max(1.0, (prompts_a_pass + 1) / 2)
        waiting = rate * none / (1 - none) if rate > 1e-6 else 1.0
        drift = (1 - ratio) * progress * waiting
        lower = drift - filled * unbooked
        share = together / prompts_a_pass
        # One pass a refill leaves every finished request missing for a step; a train of passes replaces some at once.
        late = 1 - (1 - train_lag) * min(1.0, max(0.0, (share - 0.4) / 0.8))
        missing = rate * late
        # The newcomers of a pass grow with the count: solved for it, or the rounds would swing at short outputs.
        count = max((target + drift + width / 2) / (booking + filled / max(count, 0.5) * unbooked), 0.5)
    return Corridor(target, booking, lower, width, missing)


def running_mean(
    pool: int,
    page: int,
    prompt: int,
    max_new: int,
    mean: float,
    pairs: float,
    ratio: float,
    chunk: int,
    clip: int,
    train_lag: float,
    small: int,
    edge: float,
) -> float:
    """Mean running requests that memory alone allows; see the module. `small`: below it whole requests are walked."""
    path = corridor(pool, page, prompt, max_new, mean, pairs, ratio, chunk, clip, train_lag)
    if path.target <= 0:
        return 1.0 if prompt + min(max_new, clip) + page < pool else 0.0
    count = (path.target + path.lower + path.width / 2) / path.booking
    if count < small:
        progress = pairs / mean
        spread = (1 - ratio) * progress * (0.577 + 0.846 * (progress / mean - 0.5))
        top = math.ceil((path.target + path.lower + edge * spread * math.sqrt(max(count, 1.0))) / path.booking)
        count = min(_walk(path, spread), float(max(top, 1)))
    return max(count - path.missing, 0.0)


def _walk(path: Corridor, spread: float) -> float:
    """Mean of the stationary walk over whole counts: up when bookings lie below the corridor, down above it."""
    target, booking, lower, width, _ = path
    first = max(1, math.floor((target + lower) / booking) - 1)
    last = max(first, math.ceil((target + lower + width) / booking) + 2)
    weight, total, weighted = 1.0, 0.0, 0.0
    for count in range(first, last + 1):
        total += weight
        weighted += weight * count
        booked = count * booking - target
        up = _tail((booked - lower) / (spread * math.sqrt(count - 1) + 1))
        down = _tail((lower + width - booked - booking) / (spread * math.sqrt(count) + 1))
        weight *= max(up, _NEVER) / max(down, _NEVER)
        if weight > 1e30:
            weight, total, weighted = weight * 1e-30, total * 1e-30, weighted * 1e-30
    return weighted / total


def moments_of(*, mean: float, generated: float) -> OutputMoments:
    """Moments from the mean output and the mean tokens already generated over decode steps, E[L(L-1)/2] / E[L-1]."""
    return OutputMoments(mean, generated * (mean - 1))


class Demand(NamedTuple):
    """One server and its traffic: lengths in tokens, `cap` in requests, `floor` the ratio that the booking decays to."""

    pool: int
    page: int
    prompt: int
    max_new: int
    moments: OutputMoments
    shape: Shape
    floor: Fraction
    chunk: int
    pass_tokens: int
    cap: int


def _law(release: EngineRelease, demand: Demand, ratio: float) -> float:
    return running_mean(
        demand.pool,
        demand.page,
        demand.prompt,
        demand.max_new,
        demand.moments.mean,
        demand.moments.pairs,
        ratio,
        demand.chunk,
        release.integer("clip_max_new_tokens"),
        release.number("steady_train_lag"),
        release.integer("steady_chain_below"),
        release.number("steady_edge"),
    )


def _burst(release: EngineRelease, demand: Demand, ratio: Fraction) -> int:
    clip = release.integer("clip_max_new_tokens")
    return burst_size(
        demand.pool,
        demand.page,
        demand.prompt,
        demand.max_new,
        demand.chunk,
        demand.pass_tokens,
        ratio,
        demand.cap,
        clip,
    )


def raised_ratio(release: EngineRelease, demand: Demand) -> float:
    """About the ratio that a retraction leaves: (mean progress + 20) / max_tokens, never below the floor."""
    progress = demand.moments.pairs / demand.moments.mean
    estimate = (progress + release.integer("retract_decode_steps")) / max(demand.max_new, 1)
    return max(float(demand.floor), min(1.0, estimate))


def capped_mean(cap: int, *, mean: float, prompt: int, chunk: int) -> float:
    """Mean running requests where the request cap binds: all rows, less those that a finish left open for a step."""
    passes = ceil_div(prompt, chunk) if chunk > 0 else 1
    return max(cap - cap / mean * passes, 0.0)


def steady_state(
    release: EngineRelease, demand: Demand, *, lockstep: bool | None = None, ignore_eos: bool = False
) -> SteadyState:
    """Mean running requests with the interval that covers what was measured.

    Equal output lengths keep the order of their start for good: `lockstep` says whether all started at once (True), at
    mixed phases (False), or is unknown (None: the mean of mixed phases, the interval of both). With `ignore_eos` every
    request is booked in full, and the first burst is the steady state.
    """
    if ignore_eos:
        count = _burst(release, demand, Fraction(1))
        regime = "request_cap" if count >= demand.cap - 1 else "memory"
        return SteadyState(float(count), float(count), float(count), "burst at full booking", regime)
    memory = _law(release, demand, float(demand.floor))
    if demand.shape == "fixed":
        state = _fixed(release, demand, memory, lockstep=lockstep)
    else:
        half = half_width(release, demand, memory)
        state = SteadyState(memory, memory * (1 - half), memory * (1 + half), "booking corridor", "memory")
    return _within_cap(release, demand, state)


def half_width(release: EngineRelease, demand: Demand, count: float) -> float:
    """Relative accuracy of the law for `count` running requests: wider for few requests and for long outputs."""
    mean = demand.moments.mean
    widest = release.number("steady_accuracy_long")
    if mean >= release.integer("long_output"):
        return widest
    half = release.number("steady_accuracy") + mean / release.integer("steady_accuracy_length")
    half += release.number("steady_accuracy_granularity") / max(count, 1.0)
    return min(half, widest)


def _within_cap(release: EngineRelease, demand: Demand, state: SteadyState) -> SteadyState:
    cap = demand.cap
    bound = capped_mean(cap, mean=demand.moments.mean, prompt=demand.prompt, chunk=demand.chunk)
    if state.mean < bound:
        return state._replace(high=min(state.high, float(cap)))
    low = min(state.low, bound) if state.low < bound else bound * (1 - release.number("steady_accuracy"))
    # Where memory would hold hardly more, it is memory that bounds the count above, not the cap.
    return SteadyState(bound, low, min(float(cap), state.high), "request cap less open rows", "request_cap")


def _fixed(release: EngineRelease, demand: Demand, memory: float, *, lockstep: bool | None) -> SteadyState:
    """Equal lengths: a cohort that starts together ends together, and its growth may overflow the pool."""
    raised = _law(release, demand, raised_ratio(release, demand))
    mixed = _mixed_phases(release, demand, memory, raised)
    if lockstep is False:
        return mixed
    cohort = _burst(release, demand, demand.floor)
    length = round_up(demand.prompt + round(demand.moments.mean), demand.page)
    if cohort * length > demand.pool:
        mean = _between(release, demand, memory, raised)
        together = SteadyState(
            mean,
            mean * release.number("lockstep_low"),
            mean * release.number("lockstep_high"),
            _RETRACTING,
            "retraction",
        )
    else:
        half = release.number("steady_accuracy")
        together = SteadyState(
            float(cohort), cohort * (1 - half), cohort * (1 + half), "burst at the decayed ratio", "memory"
        )
    if lockstep:
        return together
    return mixed._replace(
        low=min(mixed.low, together.low),
        high=max(mixed.high, together.high),
        law=f"{mixed.law}; interval from requests in step to mixed phases",
    )


def _mixed_phases(release: EngineRelease, demand: Demand, memory: float, raised: float) -> SteadyState:
    length = demand.moments.mean
    if length <= release.number("retraction_output_share") * demand.max_new:
        half = half_width(release, demand, memory)
        return SteadyState(memory, memory * (1 - half), memory * (1 + half), "booking corridor", "memory")
    mean = _between(release, demand, memory, raised)
    return SteadyState(
        mean,
        mean * release.number("retraction_low"),
        mean * release.number("retraction_high"),
        _RETRACTING,
        "retraction",
    )


def _between(release: EngineRelease, demand: Demand, memory: float, raised: float) -> float:
    """The law where requests are retracted: a retraction raises the ratio, and long outputs give it time to decay."""
    short, long = release.integer("retraction_short"), release.integer("retraction_long")
    decayed = min(1.0, max(0.0, (demand.moments.mean - short) / (long - short)))
    return raised + decayed * (memory - raised)
