"""The steady-state law against a small re-implementation of the engine's scheduler: where no vector reaches.

An endless backlog; one token a step and request; the newest request is preempted and recomputed; blocks behind a window
are freed one processed step late (asynchronous scheduling).
"""

from __future__ import annotations

import math
import random
from collections import deque

import pytest

from enginemem.engines.vllm.admission import steady_limits, steady_state
from enginemem.engines.vllm.held import next_request_blocks
from enginemem.engines.vllm.layout import KvRow
from enginemem.release import load_release
from enginemem.traffic import Shape, output_moments
from enginemem.units import ceil_div

RELEASE = load_release("vllm")
FULL = KvRow("full", 16)

# DeepSeek V4: two groups of windows, one of compressed rows, one each of the compressors' states.
COMPRESSED = [
    KvRow("sliding", 64, window=128),
    KvRow("sliding", 64, window=128),
    KvRow("mla", 256),
    KvRow("sliding", 4, window=8),
    KvRow("sliding", 8, window=128),
]


class Request:
    def __init__(self, prompt: int, output: int, groups: int) -> None:
        self.tokens, self.left = prompt, output
        self.computed = self.processed = 0
        self.held, self.freed = [0] * groups, [0] * groups


class Scheduler:
    """Requests in admission order, and the free blocks of one pool that all groups draw from."""

    def __init__(
        self, rows: list[KvRow], *, blocks: int, cap: int, budget: int, prompt: int, outputs: deque[int]
    ) -> None:
        self.rows, self.cap, self.budget, self.prompt, self.outputs = rows, cap, budget, prompt, outputs
        self.free = blocks - 1
        self.running: list[Request] = []
        self.waiting: deque[Request] = deque()

    def release(self, request: Request) -> None:
        self.free += sum(request.held) - sum(request.freed)
        request.held, request.freed = [0] * len(self.rows), [0] * len(self.rows)

    def drop_behind_windows(self, request: Request) -> None:
        for index, row in enumerate(self.rows):
            if row.window is not None:
                behind = min(max(0, request.processed - row.window + 1) // row.block_size, request.held[index])
                self.free += max(0, behind - request.freed[index])
                request.freed[index] = max(behind, request.freed[index])

    def grow(self, request: Request, count: int) -> bool:
        wanted = [ceil_div(request.computed + count, row.block_size) for row in self.rows]
        need = sum(wanted) - sum(request.held)
        if need > self.free:
            return False
        self.free -= need
        request.held = wanted
        return True

    def step(self) -> int:
        budget, scheduled, preempted, index = self.budget, [], False, 0
        while index < len(self.running) and budget > 0:
            request = self.running[index]
            count = min(request.tokens - request.computed, budget)
            self.drop_behind_windows(request)
            while not self.grow(request, count):
                victim, preempted = self.running.pop(), True
                self.release(victim)
                victim.computed = victim.processed = 0
                self.waiting.appendleft(victim)
                if victim is request:
                    break
            else:
                scheduled.append((request, count))
                budget -= count
                index += 1
        while not preempted and budget > 0 and len(self.running) < self.cap:
            if not self.waiting:
                self.waiting.append(Request(self.prompt, self.outputs.popleft(), len(self.rows)))
            request = self.waiting[0]
            needs = [next_request_blocks(row, prompt=request.tokens, in_flight=2 * self.budget) for row in self.rows]
            count = min(request.tokens, budget)
            if sum(needs) > self.free or not self.grow(request, count):
                break
            self.running.append(self.waiting.popleft())
            scheduled.append((request, count))
            budget -= count
        seen = len(self.running)
        for request, count in scheduled:
            request.processed, request.computed = request.computed, request.computed + count
            if request.computed == request.tokens:
                request.tokens, request.left = request.tokens + 1, request.left - 1
                if request.left == 0:
                    self.release(request)
                    self.running.remove(request)
        return seen


def draws(rng: random.Random, shape: Shape, mean: int) -> int:
    if shape == "fixed":
        return mean
    if shape == "uniform":
        return rng.randint(1, 2 * mean - 1)
    return 1 + int(math.log(1 - rng.random()) / math.log(1 - 1 / mean))


CASES: dict[str, tuple[list[KvRow], int, int, int, int, Shape, int]] = {
    "full attention": ([FULL], 6000, 1024, 8192, 1000, "geometric", 100),
    "uniform outputs": ([FULL], 6000, 1024, 8192, 1000, "uniform", 100),
    "request cap": ([FULL], 6000, 32, 8192, 500, "geometric", 50),
    "step budget": ([FULL], 20000, 1024, 4096, 1000, "fixed", 20),
    "one token": ([FULL], 20000, 1024, 2048, 1000, "fixed", 1),
    "small windows": ([KvRow("sliding", 16, window=128)] * 5 + [FULL], 14000, 1024, 8192, 4000, "geometric", 200),
    "small windows, long prompts": (
        [KvRow("sliding", 16, window=128)] * 5 + [FULL],
        14000,
        1024,
        8192,
        16000,
        "geometric",
        200,
    ),
    "compressed, prefills apart": (COMPRESSED, 3000, 1024, 8192, 2000, "geometric", 300),
    "compressed, prefills close": (COMPRESSED, 12000, 1024, 8192, 2000, "geometric", 300),
    "compressed, long prompts": (COMPRESSED, 9000, 1024, 8192, 16000, "geometric", 200),
    "large windows": ([KvRow("sliding", 16, window=1024)] * 2 + [FULL], 8000, 1024, 8192, 1500, "geometric", 150),
}


@pytest.mark.parametrize("name", CASES)
def test_law_covers_the_scheduler(name: str) -> None:
    rows, blocks, cap, budget, prompt, shape, mean = CASES[name]
    rng = random.Random(7)
    outputs = deque([draws(rng, shape, mean) for _ in range(20_000)])
    scheduler = Scheduler(rows, blocks=blocks, cap=cap, budget=budget, prompt=prompt, outputs=outputs)
    seen = [scheduler.step() for _ in range(1500)][500:]
    measured = sum(seen) / len(seen)
    moments = output_moments(shape=shape, mean=mean, limit=10**6)
    limits = steady_limits(
        rows,
        prompt=prompt,
        mean_output=moments.mean,
        progress=moments.progress,
        num_blocks=blocks,
        max_num_seqs=cap,
        max_num_batched_tokens=budget,
        watermark=0.0,
        in_flight=2 * budget,
        prefill_steps=RELEASE.integer("steady_prefill_steps"),
    )
    state = steady_state(limits, RELEASE, prompt=prompt, mean_output=mean)
    assert state.low <= measured <= state.high, (measured, state)
    assert abs(state.mean - measured) <= max(1.0, 0.04 * measured), (measured, state)


# (blocks, prompt, mean output) -> mean running requests: a loop over the engine's own KVCacheManager (0.32.0 wheel, run
# in CPython with stand-ins for torch; the five groups of DeepSeek-V4-Flash, prefix caching off, a step settled one step
# later), 8,192 tokens a step, geometric outputs cut at 2,000, 4,000 to 5,000 steps of which the first 40 % are left out.
MANAGER = [((3_000, 2_000, 300), 61.63), ((6_000, 2_000, 300), 141.07), ((10_000, 8_000, 500), 112.72)]


@pytest.mark.parametrize(("given", "measured"), MANAGER)
def test_law_covers_the_engines_own_manager_on_packed_groups(given: tuple[int, int, int], measured: float) -> None:
    blocks, prompt, mean = given
    moments = output_moments(shape="geometric", mean=mean, limit=2_000)
    limits = steady_limits(
        COMPRESSED,
        prompt=prompt,
        mean_output=moments.mean,
        progress=moments.progress,
        num_blocks=blocks,
        max_num_seqs=1_024,
        max_num_batched_tokens=8_192,
        watermark=0.0,
        in_flight=2 * 8_192,
        prefill_steps=RELEASE.integer("steady_prefill_steps"),
    )
    state = steady_state(limits, RELEASE, prompt=prompt, mean_output=mean, late=True)
    assert state.low <= measured <= state.high
    assert state.mean == pytest.approx(measured, rel=0.03)
