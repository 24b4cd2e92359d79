"""Admission by the pool of window layers: the law against a token-level walk of the scheduler's rules, and whole plans."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from enginemem import Scenario
from enginemem.engines import sglang
from enginemem.engines.plan import EnginePlan
from enginemem.engines.sglang.window import WindowPool, running_in_window
from enginemem.release import load_release
from enginemem.traffic import output_moments

RELEASE = load_release("sglang")
Draw = Callable[[random.Random], int]


def plan(**inputs: object) -> EnginePlan:
    return sglang.plan(Scenario(**inputs), RELEASE)


def value(found: EnginePlan, step: str) -> object:
    return {step.id: step.value for step in found.steps}[f"sglang.{step}"]


class Walk:
    """Requests as [outputs, length], page 1; both pools hold all tokens of a request. Chunks of 8,192 tokens.

    A pass admits while a newcomer, booked in full, fits beside the bookings of the full pool and beside what the window
    pool holds; running requests are booked at a ratio that decays over 600 decode steps. What overflows is retracted,
    fewest outputs first, and sets the ratio anew.
    """

    def __init__(self, pool: int, window: int, prompt: int, limit: int, draw: Draw) -> None:
        self.pool, self.window, self.prompt, self.limit, self.draw = pool, window, prompt, limit, draw
        self.rng = random.Random(1)
        self.running: list[list[int]] = []
        self.retracted: list[list[int]] = []
        self.ratio, self.held = 0.7, 0
        self.head = self.next()

    def next(self) -> list[int]:
        return self.retracted.pop(0) if self.retracted else [0, self.draw(self.rng)]

    def admit(self) -> bool:
        booked = sum([self.limit - out for out, _ in self.running]) * self.ratio
        free, inside, chunk, admitted = self.pool - self.held - booked, self.window - self.held, 8192, []
        while (paged := self.prompt + self.head[0]) <= chunk:
            need = paged + self.limit - self.head[0] + 1
            if not (need < free and need < inside):
                break
            free, inside, chunk = free - need, inside - need, chunk - paged
            admitted.append(self.head)
            self.head = self.next()
        for request in admitted:
            self.keep(request)
        return bool(admitted)

    def keep(self, request: list[int]) -> None:
        request[0] += 1
        if request[0] < request[1]:
            self.running.append(request)
            self.held += self.prompt + request[0]

    def decode(self) -> None:
        waiting = sorted(self.running, key=lambda request: -request[0])
        while self.held + len(waiting) > min(self.pool, self.window):
            victim = waiting.pop()
            self.running.remove(victim)
            self.held -= self.prompt + victim[0]
            self.retracted.append(victim)
            outputs = sum([out for out, _ in waiting])
            self.ratio = min(1.0, (outputs + 20 * len(waiting)) / (self.limit * len(waiting) + 1))
        self.ratio = max(0.7 * 0.14, self.ratio - 0.7 * 0.86 / 600)
        running, self.running, self.held = self.running, [], 0
        for request in running:
            self.keep(request)

    def mean(self, steps: int) -> float:
        counts: list[int] = []
        while len(counts) < steps:
            if not self.admit():
                self.decode()
                counts.append(len(self.running))
        settled = counts[steps // 3 :]
        return sum(settled) / len(settled)


def geometric(mean: int, limit: int) -> Draw:
    return lambda rng: min(limit, 1 + int(math.log(1 - rng.random()) / math.log(1 - 1 / mean)))


@pytest.mark.parametrize(
    ("pool", "prompt", "limit", "mean"),
    [(150_000, 2000, 2000, 300), (60_000, 500, 1000, 200), (200_000, 4000, 1000, 300), (150_000, 2000, 300, 300)],
)
def test_the_window_law_is_what_the_rules_give(pool: int, prompt: int, limit: int, mean: int) -> None:
    window = pool * 8 // 10
    walked = Walk(pool, window, prompt, limit, geometric(mean, limit)).mean(2500)
    moments = output_moments(shape="geometric", mean=mean, limit=limit)
    law = (window - (prompt + limit + 1)) / (prompt + moments.pairs / moments.mean)
    assert walked == pytest.approx(law, rel=0.03)


def test_requests_enter_while_another_fits_whole() -> None:
    # 10,000 tokens, prompts of 1,000, a newcomer needs 3,001 free: 1 + 6.99 enter; mid-flight each holds 1,050.
    pool = WindowPool(10_000, 3_001, 1_000, 8_192)
    assert running_in_window(pool, held=1_000) == 7
    assert running_in_window(pool, held=1_000, halves=100) == 7
    assert running_in_window(pool, held=1_000, halves=400) == 1 + 6_999 // 1_200
    assert running_in_window(WindowPool(2_000, 3_001, 1_000, 8_192), held=1_000) == 0


def test_requests_inside_one_chunk_are_bound_by_the_window_pool_once_they_run() -> None:
    found = plan(gpu="h200-sxm", model="llama-4-scout", tp=8)
    assert found.status == "ok"
    window, tokens = value(found, "pool.window_tokens"), found.kv_tokens
    assert isinstance(window, int)
    assert tokens is not None
    # After idle the full pool books 0.7 of 2,000 outputs: 3,400 of its tokens a request against 2,000 of the window's.
    assert found.running == min(1 + (tokens - 4001) // 3400, 1 + (window - 4001) // 2000)
    # Mid-flight it books 0.098 of what is left, and the window pool, a fifth smaller, holds 2,150 tokens a request.
    full = 1 + int((tokens - 4001) // (2150 + Fraction(98, 1000) * 1850))
    assert found.running_decayed == min(full, 1 + (window - 4001) // 2150) == 1 + (window - 4001) // 2150
    assert found.running_steady is not None
    assert found.running_steady.mean == value(found, "admission.window_steady")


def test_a_window_pool_for_less_than_one_request_is_not_modeled() -> None:
    # Some 8,000 tokens beside the weights, 6,500 of them in the window pool.
    found = plan(gpu="h100-sxm", model="llama-4-scout", tp=8, prompt=4000, max_tokens=3000, preload="51.62GB")
    assert found.status == "not_modeled"
    assert "one request asks for" in (found.reason or "")


def test_prompt_and_output_have_a_window_each() -> None:
    # 7,000 and 2,000 tokens exceed a chunk of 8,192 together: the test asks for the chunk, and both pools hold them all.
    found = plan(gpu="h200-sxm", model="llama-4-scout", tp=8, prompt=7000)
    assert found.status == "ok"
    assert value(found, "admission.window_needed") == 8192 + int(str(found.page_tokens))
    assert found.running_steady is not None
    assert found.running_steady.mean == value(found, "admission.window_steady")


def test_requests_that_outgrow_the_window_are_planned_where_its_pool_is_ample() -> None:
    ample = plan(gpu="h200-sxm", model="gpt-oss-20b", prompt=8000)
    assert ample.status == "ok"
    assert "sglang.admission.window_running" not in {step.id for step in ample.steps}
    tight = plan(gpu="h200-sxm", model="llama-4-scout", tp=8, prompt=9000)
    assert tight.status == "not_modeled"
    assert "window pool" in (tight.reason or "")
