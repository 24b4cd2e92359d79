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
