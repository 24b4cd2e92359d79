"""Moments of the output length under the max_tokens cut, for the steady-state laws.

A running request is seen with a length bias: long outputs are in flight for longer. All sums are closed forms in plain
float arithmetic (`+ - * /` only), so every Python gives the same digits.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Shape = Literal["geometric", "fixed", "uniform"]


class OutputMoments(NamedTuple):
    """Moments of X = min(draw, max_tokens), in tokens.

    `mean` is E[X]; `pairs` is E[X(X-1)/2], from which both laws' mean progress follows.
    """

    mean: float
    pairs: float

    @classmethod
    def of(cls, *, mean: float, generated: float) -> OutputMoments:
        """The moments behind a measured mean output and a measured mean progress over decode steps, tokens."""
        return cls(mean, generated * (mean - 1))

    @property
    def progress(self) -> float:
        """E[X^2] / (2 E[X]) + 1/2: mean progress of a request that is seen once for each token it produces."""
        return self.pairs / self.mean + 1

    @property
    def generated(self) -> float:
        """E[X(X-1)/2] / E[X-1]: mean tokens already generated over decode steps; 0 when every output is one token."""
        return 0.0 if self.mean <= 1 else self.pairs / (self.mean - 1)


def power(base: float, exponent: int) -> float:
    """`base` to a whole power by repeated squaring: float `**` differs between C libraries, products do not."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def output_moments(*, shape: Shape, mean: int, limit: int) -> OutputMoments:
    """Moments of the output length in tokens: `mean` before the cut at `limit` (max_tokens), both at least 1.

    `fixed` is always `mean`; `geometric` has support 1, 2, ...; `uniform` is 1 .. 2 mean - 1.
    """
    if shape == "fixed":
        length = min(mean, limit)
        return OutputMoments(float(length), length * (length - 1) / 2)
    if shape == "uniform":
        top = 2 * mean - 1
        kept = min(limit, top)
        cut = top - kept
        total = kept * (kept + 1) // 2 + cut * kept
        pairs = (kept + 1) * kept * (kept - 1) // 6 + cut * (kept * (kept - 1) // 2)
        return OutputMoments(total / top, pairs / top)
    stay = 1 - 1 / mean
    longer = power(stay, limit - 1)
    reach = longer * stay
    pairs_geometric = stay * (1 - limit * longer + (limit - 1) * reach) * mean * mean
    return OutputMoments(mean * (1 - reach), max(pairs_geometric, 0.0))


def mean_after_cut(shape: Shape, mean: int, limit: int) -> float:
    """E[X]: mean output tokens after the cut at `limit`; `mean` is the mean before it."""
    return output_moments(shape=shape, mean=mean, limit=limit).mean


def marks_reached(shape: Shape, mean: int, limit: int, first: int, step: int) -> float:
    """Mean number of the marks `first`, `first` + `step`, ... that the progress of a running request has reached.

    Progress is the output token, 1 or later, that a request produces at a step taken at random; all in tokens, `first`
    and `step` at least 1. Blocks of a known prompt begin at such marks, so their mean is exact.
    """
    top = min(limit, {"fixed": mean, "uniform": 2 * mean - 1, "geometric": limit}[shape])
    count = (top - first) // step + 1 if first <= top else 0
    if not count:
        return 0.0
    if shape == "geometric":
        stay = 1 - 1 / mean
        never = power(stay, top)
        if never == 1:  # so long a mean that no request ends before the limit
            return marks_reached("fixed", top, top, first, step)
        each = power(stay, step)
        reached = power(stay, first - 1) * (1 - power(each, count)) / (1 - each)
        return min(float(count), max(0.0, (reached - count * never) / (1 - never)))
    places = count * first + step * count * (count - 1) // 2
    if shape == "fixed":
        return (count * (top + 1) - places) / top
    # A token t is produced by the share (2 mean - t) of all requests; sums over t = mark .. top, twice.
    squares = count * first * first + first * step * count * (count - 1)
    squares += step * step * ((count - 1) * count * (2 * count - 1) // 6)
    wide = 4 * mean
    twice = count * (top + 1) * (wide - top) - places * (wide + 1) + squares
    return twice / (top * (wide - 1 - top))
