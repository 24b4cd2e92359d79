"""The steady state against the step rules, played out with outputs of equal and of random length."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import pytest

from enginemem.engines.tensorrt_llm.steady import mean_running
from enginemem.engines.tensorrt_llm.steps import Request, scheduler_steps

EXTRA = 1  # the overlap scheduler keeps a finished request's place for one step


class Load(NamedTuple):
    """Places that admission allows, prompt and step budget in tokens, mean output, unit of chunks."""

    places: int
    prompt: int
    tokens: int
    mean: int
    chunk: int | None


def played(load: Load, *, geometric: bool, steps: int) -> float:
    """Mean running count of an endless queue, after a third of the steps: prompts start where a step has room."""
    places, prompt, tokens, mean, chunk = load
    rng = random.Random(f"{places}/{prompt}/{tokens}/{mean}")
    leaving: Counter[int] = Counter()
    generating, partial, counts = 0, 0, []
    for step in range(steps):
        generating -= leaving.pop(step, 0)
        room, started = tokens - generating, 0
        while partial or generating + started < places:
            rest = partial or prompt
            part = rest if rest <= room else 0 if chunk is None else room // chunk * chunk
            if part == 0:
                break
            room, partial = room - part, rest - part
            started += partial == 0
        counts.append(generating + started + (partial > 0))
        for _ in range(started):
            length = 1
            while geometric and rng.random() > 1 / mean:
                length += 1
            leaving[step + (length if geometric else mean) + EXTRA] += 1
        generating += started
    kept = counts[len(counts) // 3 :]
    return sum(kept) / len(kept)


@pytest.mark.parametrize("geometric", [True, False])
@pytest.mark.parametrize(
    "load",
    [
        Load(113, 2000, 8192, 300, None),
        Load(196, 2000, 8192, 300, None),
        Load(1098, 2000, 8192, 300, None),
        Load(113, 2000, 8192, 20, None),
        Load(55, 8192, 8192, 300, None),
        Load(500, 8000, 8192, 300, None),
        Load(200, 7000, 8192, 300, None),
        Load(200, 50, 64, 100, None),
        Load(2048, 200, 8192, 20, None),
        Load(113, 2000, 8192, 300, 32),
        Load(500, 8192, 8192, 50, 32),
        Load(500, 50, 64, 300, 32),
        Load(1098, 2000, 8192, 300, 32),
    ],
)
def test_law_agrees_with_the_steps(load: Load, geometric: bool) -> None:
    law, low, high = mean_running(
        places=load.places,
        occupied=load.mean + EXTRA,
        prompt=load.prompt,
        max_num_tokens=load.tokens,
        chunk=load.chunk,
    )
    found = played(load, geometric=geometric, steps=40 * load.mean + 2000)
    assert law == pytest.approx(found, rel=0.03)
    assert low - 0.01 <= found <= high + 0.01


@pytest.mark.parametrize(("output", "settled"), [(2000, 113), (300, 196)])
def test_no_evict_settles_at_the_closed_form(output: int, settled: int) -> None:
    rng = random.Random(output)
    queue = [Request(2000, output, min(output, 1 + int(rng.expovariate(1 / 300)))) for _ in range(2000)]
    rows = scheduler_steps(
        queue, blocks=14_153, max_batch_size=2048, max_num_tokens=8192, tokens_per_block=32, steps=800
    )
    counts = [row.batch_size for row in rows[100:]]
    # Never above, and below only while more than four prompts wait for a step's 8,192 tokens.
    assert max(counts) == Counter(counts).most_common(1)[0][0] == settled
    assert sum(counts) / len(counts) == pytest.approx(settled, rel=0.005)


def test_prompts_as_long_as_the_token_budget_run_one_at_a_time() -> None:
    """The published closed form says 55 here; a second prompt never fits beside a request that generates."""
    rows = scheduler_steps(
        [Request(8192, 1, 1)] + [Request(8192, 10, 10)] * 60,
        blocks=14_153,
        max_batch_size=2048,
        max_num_tokens=8192,
        tokens_per_block=32,
        steps=300,
    )
    assert {row.batch_size for row in rows} == {1}
    assert mean_running(places=55, occupied=11, prompt=8192, max_num_tokens=8192, chunk=None)[0] == 1
