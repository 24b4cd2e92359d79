"""The burst from idle against the real scheduler, and the accelerated loop against the plain one."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from enginemem.engines.sglang.burst import burst_size
from enginemem.units import round_up

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "sglang" / "burst.json").read_text())["cases"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_the_burst_is_the_schedulers(case: dict[str, Any]) -> None:
    got = burst_size(
        case["pool_tokens"],
        case["page_size"],
        case["prompt_tokens"],
        case["max_new_tokens_effective"],
        case["chunked_prefill_size"],
        case["max_prefill_tokens"],
        Fraction(str(case["new_token_ratio"])),
        case["max_running_requests"],
        4096,
        case["overlap_schedule"],
    )
    assert got == case["expect"]["running"]


class Plain:
    """The prefill passes as the scheduler walks them, request by request, on rationals."""

    def __init__(self, pool: int, page: int, prompt: int, max_new: int, ratio: Fraction, cap: int) -> None:
        self.pool, self.page, self.prompt, self.max_new, self.ratio, self.cap = pool, page, prompt, max_new, ratio, cap
        self.running = self.fresh = self.part = 0
        self.full = False

    def one_pass(self, chunk: int, limit: int, *, overlap: bool) -> bool:
        page, prompt = self.page, self.prompt
        whole, later = min(self.max_new, 4096), max(0, min(self.max_new - 1, 4096))
        count, part = self.running + self.fresh, self.part
        if count == 0:
            self.full = False
        rows = self.cap - count - (1 if part else 0)
        if (self.full or rows <= 0) and not part:
            return False
        free = self.pool - round_up(prompt, page) * count - round_up(part, page)
        total = self.ratio * (self.running * later + self.fresh * (whole if overlap else later))
        left = chunk if chunk > 0 else 10**12
        admitted = finished = 0
        open_part = part
        lengths = []
        if part:
            allowed = min(left, int(free - total))
            taken = min(prompt - part, allowed if allowed > 0 else (left if chunk > 0 else prompt))
            lengths.append((taken, taken == prompt - part))
            open_part = 0 if taken == prompt - part else part + taken
        current = 0
        while True:
            if lengths:
                taken, completes = lengths.pop()
                paged = round_up(taken, page)
                total += paged + page + (whole if completes else 0)
                current += paged + page
                limit, left, admitted = limit - paged, left - paged, admitted + 1
                finished += completes
                if not (admitted == 1 and part):
                    if free - total <= 0 or free - current <= 0:
                        self.full = True
                        break
                    if limit <= 0 or left <= 0:
                        break
            if admitted >= rows:
                self.full = True
            if self.full:
                break
            if not prompt + whole + page < free - total:
                self.full = admitted > 0 or count > 0
                break
            if chunk <= 0 and admitted and round_up(prompt, page) >= limit:
                break
            if round_up(prompt, page) > left:
                if left // page * page <= 0:
                    break
                open_part = left // page * page
                lengths.append((open_part, False))
            else:
                lengths.append((prompt, True))
        if admitted == 0:
            return False
        if count == 0 or open_part:
            self.full = False
        self.running, self.fresh, self.part = count, finished, open_part
        return True


def test_jumps_and_closed_forms_leave_the_burst_unchanged() -> None:
    rng = random.Random(22)
    compared = 0
    for _ in range(1500):
        page = rng.choice((1, 1, 16, 64))
        pool = int(10 ** rng.uniform(1.5, 5.3)) // page * page
        prompt, max_new = int(10 ** rng.uniform(0, 4.3)), int(10 ** rng.uniform(0, 4.3))
        chunk = rng.choice((-1, 16, 64, 512, 8192, 16384, rng.randrange(1, 30000)))
        chunk = chunk if chunk < 0 else max(page, chunk // page * page)
        ratio = rng.choice((Fraction(7, 10), Fraction(1), Fraction(0), Fraction(rng.randrange(1001), 1000)))
        cap, overlap = rng.choice((1, 2, 48, 2048, rng.randrange(1, 4000))), rng.random() < 0.7
        plain = Plain(pool, page, prompt, max_new, ratio, cap)
        passes = 0
        while passes < 3000 and plain.one_pass(chunk, 16384, overlap=overlap):
            passes += 1
        if passes < 3000:
            compared += 1
            given = (pool, page, prompt, max_new, chunk, 16384, ratio, cap, 4096, overlap)
            assert burst_size(*given) == plain.running + plain.fresh, given
    assert compared > 1300


def test_huge_pools_of_tiny_prompts_are_admitted_in_no_time() -> None:
    # one token of prompt and ratio 0: the cap of a million requests is reached in 62,500 equal passes
    assert burst_size(50_000_000, 1, 1, 4096, 16, 16384, Fraction(0), 1_000_000, 4096) == 1_000_000
