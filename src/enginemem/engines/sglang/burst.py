"""Requests admitted in one uninterrupted run of prefill passes after idle: exact, pass by pass, in whole numbers.

Equal prompts of distinct content, an endless queue, nobody finishes. The share of max_tokens that running requests are
booked at is an exact ratio, so that no rounding decides an admission. Source rules: managers/scheduler.py
_get_new_batch_prefill_raw, managers/schedule_policy.py PrefillAdder, mem_cache/prefill_budget.py.
"""

from __future__ import annotations

from fractions import Fraction

from enginemem.units import ceil_div, round_up


class _Burst:
    """The state between two passes. `scale` is the ratio's denominator: bookings are integers in units of 1/scale.

    `running` requests have one output token or more, `fresh` ones finished their prompt in the pass before; `done` are
    the tokens of the one prompt that is split over passes (0: none).
    """

    __slots__ = (
        "booked_fresh",
        "booked_running",
        "cap",
        "chunk",
        "done",
        "fresh",
        "full",
        "latch",
        "page",
        "pages",
        "pass_tokens",
        "pool",
        "prompt",
        "running",
        "scale",
        "span",
        "tight",
        "whole",
        "window",
    )

    def __init__(
        self,
        *,
        pool: int,
        page: int,
        prompt: int,
        max_new: int,
        chunk: int,
        pass_tokens: int,
        ratio: Fraction,
        cap: int,
        clip: int,
        overlap: bool,
        latch: bool,
        window: int | None,
        span: int,
    ) -> None:
        self.latch, self.window, self.span = latch, window, span
        self.pool, self.page, self.prompt, self.cap, self.pass_tokens = pool, page, prompt, cap, pass_tokens
        self.pages = round_up(prompt, page)
        # Chunking off: no chunk bounds a pass, but a second prompt must stay below the pass's token limit.
        self.chunk = chunk if chunk > 0 else 0
        self.whole = min(max_new, clip)
        self.scale = ratio.denominator
        one_out = max(0, min(max_new - 1, clip))
        self.booked_running = ratio.numerator * one_out
        # Under overlap the first token of the last pass is still in flight.
        self.booked_fresh = ratio.numerator * self.whole if overlap else self.booked_running
        self.running = self.fresh = self.done = 0
        self.full = self.tight = False

    def booked(self) -> int:
        return self.running * self.booked_running + self.fresh * self.booked_fresh

    def one_pass(self) -> bool:
        """Run one pass; False when it admits nothing (the burst is over)."""
        count = self.running + self.fresh
        part = self.done > 0
        if count == 0 or not self.latch:
            self.full = False
        if self.full and not part:
            return False
        rows = self.cap - count - part
        if rows <= 0 and not part:
            return False
        scale, page, pages = self.scale, self.page, self.pages
        free = self.pool - count * pages - round_up(self.done, page)
        room = scale * free - self.booked()  # scaled: free minus everything booked so far
        # The pool of window layers holds the same tokens, and books newcomers in their own pass only, a window at most.
        inside = None if self.window is None else self.window - count * pages - round_up(self.done, page)
        chunk = self.chunk or None
        left_pass = self.pass_tokens
        admitted, finished, done = 0, 0, 0
        if part:
            limit = room // scale if room >= 0 else -(-room // scale)
            if chunk is not None:
                limit = min(limit, chunk)
            if inside is not None:
                limit = min(limit, inside - page)
            if limit <= 0 and not self.latch:
                return False  # beside a window pool a split prompt waits for memory
            if limit <= 0:
                limit = chunk if chunk is not None else self.prompt
            rest = self.prompt - self.done
            taken = min(rest, limit)
            charged = round_up(taken, page)
            completes = taken == rest
            own = charged + (self.whole if completes else 0)
            room -= scale * (own + page)
            inside = None if inside is None else inside - min(own, self.span) - page
            left_pass -= charged
            if chunk is not None:
                chunk -= charged
            admitted = 1
            finished, done = (1, 0) if completes else (0, self.done + taken)
        each = scale * (pages + page + self.whole)
        need = scale * (self.prompt + self.whole + page)
        by_rows = max(0, rows - admitted)
        by_memory = max(0, ceil_div(room - need, each)) if room > need else 0  # strictly more room than the need
        if inside is not None:
            inner = min(pages + self.whole, self.span) + page
            by_memory = min(by_memory, max(0, ceil_div(inside - inner, inner)))
        if chunk is None:
            by_tokens = self._unchunked(admitted, left_pass)
            ends_exactly, tail = by_tokens * self.pages >= left_pass, 0
        else:
            by_tokens, ends_exactly, tail = self._chunked(chunk, left_pass)
        whole = min(by_rows, by_memory, by_tokens)
        full = False
        if whole < by_tokens:
            full = True  # rows or memory ended the pass
        else:
            after = room - whole * each
            if whole and after <= 0:
                full = True
            elif whole == by_tokens and not ends_exactly:
                # one more candidate is looked at: it becomes the next split prompt, or finds no room
                if whole >= by_rows or whole >= by_memory:
                    full = whole + admitted > 0 or count > 0
                elif tail > 0:
                    done = tail
                    admitted += 1
        admitted += whole
        if admitted == 0:
            return False
        # A pass from idle, or one that leaves a prompt unfinished, opens admission again.
        self.full = full and count > 0 and done == 0
        self.running, self.fresh, self.done = count, finished + whole, done
        return True

    def _unchunked(self, admitted: int, left_pass: int) -> int:
        """Whole prompts that a pass without chunking takes: the first always, later ones below the pass's tokens."""
        if left_pass <= 0:
            return 1 if admitted == 0 else 0
        if admitted:
            return (left_pass - 1) // self.pages
        return max(1, (left_pass - 1) // self.pages)

    def _chunked(self, chunk: int, left_pass: int) -> tuple[int, bool, int]:
        """Whole prompts that the chunk and the pass's tokens allow, whether they end the pass on the spot, and else the
        tokens of the split prompt that would follow."""
        fits = chunk // self.pages if chunk > 0 else 0
        stop = ceil_div(left_pass, self.pages) if left_pass > 0 else 0
        if 0 < stop <= fits:
            return stop, True, 0
        rest = chunk - fits * self.pages
        if fits and rest <= 0:
            return fits, True, 0
        return fits, False, max(0, rest) // self.page * self.page

    def jump(self) -> None:
        """Skip passes that are certain to be bounded by the chunk alone: each then takes exactly as many tokens."""
        step = self._tokens_a_pass()
        if step <= 0 or (self.full and self.latch) or self.done % self.page:
            return
        passes = 0 if self.tight else self._certain_passes(step)
        if passes >= 2:
            before = self.done + (passes - 1) * step
            after = before + step
            total = self.running + self.fresh + after // self.pages
            self.fresh = after // self.pages - before // self.pages
            self.running, self.done = total - self.fresh, after % self.pages
        else:
            self.tight = True  # room only shrinks from here on
            if self.done and self.prompt - self.done > step:
                self._skip_middle(step)

    def _certain_passes(self, step: int) -> int:
        """Passes that memory and rows surely leave alone: room for all that one pass can complete, and one more."""
        pages, scale = self.pages, self.scale
        count = self.running + self.fresh
        touched = ceil_div(step, pages) + 1
        whole = pages + self.page + self.whole
        spare = scale * (self.pool - count * pages - self.done - touched * whole)
        spare -= (count + 1) * self.booked_running + touched * self.booked_fresh
        price = step * (scale * pages + self.booked_running)  # of one pass, times `pages`
        passes = min(spare * pages // price, (self.cap - count - touched - 2) * pages // step)
        if self.window is None:
            return passes
        return min(passes, (self.window - count * pages - self.done - (touched + 1) * whole) // step)

    def _skip_middle(self, step: int) -> None:
        """Skip the full chunks inside the split prompt: they admit nothing else and leave admission open."""
        count = self.running + self.fresh
        passes = (self.prompt - self.done - 1) // step
        spare = self.scale * (self.pool - count * self.pages - self.done) - self.booked()
        passes = min(passes, spare // (self.scale * step) - 1)
        if self.window is not None:
            passes = min(passes, (self.window - count * self.pages - self.done - self.page) // step - 1)
        if passes >= 1:
            self.running, self.fresh = count, 0
            self.done += passes * step

    def _tokens_a_pass(self) -> int:
        """Tokens of every pass that nothing but chunk or pass limit bounds; 0 where passes differ."""
        pages, limit, chunk = self.pages, self.pass_tokens, self.chunk
        if not chunk:
            return 0 if self.done else pages * self._unchunked(0, limit)
        if chunk % self.page:
            return 0
        if pages > chunk:
            return chunk  # no whole prompt fits, and the pass's limit is looked at only after an admission
        by_pass = ceil_div(limit, pages) * pages
        if by_pass <= chunk:
            return 0 if self.done else by_pass
        return chunk if chunk <= limit else 0


def burst_size(
    pool: int,
    page: int,
    prompt: int,
    max_new: int,
    chunk: int,
    pass_tokens: int,
    ratio: Fraction,
    cap: int,
    clip: int,
    overlap: bool = True,
    latch: bool = True,
    window: int | None = None,
    span: int = 0,
) -> int:
    """Size of the first decode batch after idle under an endless queue.

    `pool`, `prompt`, `max_new` (after the engine's clip), `chunk` (0 or less: off), `pass_tokens`
    (`max_prefill_tokens`) and `clip` in tokens, `cap` in requests; `ratio` is the new-token ratio at the start.
    Beside a pool of window layers a pass that found no room does not close admission (`latch` False); `window` are that
    pool's tokens where neither prompt nor output outgrows the window of `span` tokens, else (None) the pool must be
    large enough not to matter.
    """
    state = _Burst(
        pool=pool,
        page=page,
        prompt=prompt,
        max_new=max_new,
        chunk=chunk,
        pass_tokens=pass_tokens,
        ratio=ratio,
        cap=cap,
        clip=clip,
        overlap=overlap,
        latch=latch,
        window=window,
        span=span,
    )
    while state.one_pass():
        state.jump()
    return state.running + state.fresh
