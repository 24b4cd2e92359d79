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

    def __init__(
        self,
        pool: int,
        page: int,
        prompt: int,
        max_new: int,
        ratio: Fraction,
        cap: int,
        window: int | None = None,
        span: int = 0,
    ) -> None:
        self.pool, self.page, self.prompt, self.max_new, self.ratio, self.cap = pool, page, prompt, max_new, ratio, cap
        self.window, self.span = window, span
        self.running = self.fresh = self.part = 0
        self.full = False

    def one_pass(self, chunk: int, limit: int, *, overlap: bool) -> bool:
        page, prompt = self.page, self.prompt
        whole, later = min(self.max_new, 4096), max(0, min(self.max_new - 1, 4096))
        count, part = self.running + self.fresh, self.part
        if count == 0 or self.window is not None:
            self.full = False
        rows = self.cap - count - (1 if part else 0)
        if (self.full or rows <= 0) and not part:
            return False
        free = self.pool - round_up(prompt, page) * count - round_up(part, page)
        total = self.ratio * (self.running * later + self.fresh * (whole if overlap else later))
        # Neither prompts nor outputs outgrow the window: its pool holds the same tokens as the other.
        inside = 10**12 if self.window is None else self.window - round_up(prompt, page) * count - round_up(part, page)
        left = chunk if chunk > 0 else 10**12
        admitted = finished = 0
        open_part = part
        lengths = []
        if part:
            allowed = min(left, int(free - total))
            if self.window is not None:
                allowed = min(allowed, inside - page)
                if allowed <= 0:
                    return False
            taken = min(prompt - part, allowed if allowed > 0 else (left if chunk > 0 else prompt))
            lengths.append((taken, taken == prompt - part))
            open_part = 0 if taken == prompt - part else part + taken
        current = 0
        while True:
            if lengths:
                taken, completes = lengths.pop()
                paged = round_up(taken, page)
                total += paged + page + (whole if completes else 0)
                inside -= min(paged + (whole if completes else 0), self.span) + page
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
            fits = prompt + whole + page < free - total
            if not fits or (
                self.window is not None and not min(round_up(prompt, page) + whole, self.span) + page < inside
            ):
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


def test_window_pools_bound_the_burst_and_reopen_admission_every_pass() -> None:
    rng = random.Random(23)
    compared = lowered = 0
    for _ in range(1500):
        page = rng.choice((1, 1, 16, 64))
        pool = int(10 ** rng.uniform(1.5, 5.3)) // page * page
        window = int(pool * rng.choice((0.1, 0.5, 0.8, 0.8, 1.0, 1.5))) // page * page
        prompt, max_new = int(10 ** rng.uniform(0, 4.3)), int(10 ** rng.uniform(0, 4.3))
        span = max(round_up(prompt, page), max_new) + rng.choice((0, 1, 500, 20_000))
        chunk = rng.choice((-1, 512, 8192, rng.randrange(1, 30000)))
        chunk = chunk if chunk < 0 else max(page, chunk // page * page)
        ratio = rng.choice((Fraction(7, 10), Fraction(1), Fraction(0), Fraction(rng.randrange(1001), 1000)))
        cap, overlap = rng.choice((1, 2, 48, 2048, rng.randrange(1, 4000))), rng.random() < 0.7
        plain = Plain(pool, page, prompt, max_new, ratio, cap, window, span)
        passes = 0
        while passes < 3000 and plain.one_pass(chunk, 16384, overlap=overlap):
            passes += 1
        if passes < 3000:
            compared += 1
            given = (pool, page, prompt, max_new, chunk, 16384, ratio, cap, 4096, overlap)
            found = burst_size(*given, latch=False, window=window, span=span)
            assert found == plain.running + plain.fresh, (given, window, span)
            lowered += found < burst_size(*given, latch=False)
    assert compared > 1300
    assert lowered > 100


def test_an_open_admission_reaches_the_closed_form() -> None:
    # Booked at the ratio from the next pass on, the last newcomers leave room for another: 1 + (392,000 - 4,001) / 3,400.
    given = (392_000, 1, 2000, 2000, 8192, 16384, Fraction(7, 10), 2048, 4096)
    assert (burst_size(*given), burst_size(*given, latch=False)) == (114, 115)


def test_huge_pools_of_tiny_prompts_are_admitted_in_no_time() -> None:
    # one token of prompt and ratio 0: the cap of a million requests is reached in 62,500 equal passes
    assert burst_size(50_000_000, 1, 1, 4096, 16, 16384, Fraction(0), 1_000_000, 4096) == 1_000_000
