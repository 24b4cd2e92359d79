"""KV groups of layers whose pages differ, side by side in one block: the rule where the layout keeps a block's layers
together.

A block is as wide as the widest group; the others leave its rest empty. Source rule: `_get_packed_kv_cache_groups` and
`_get_kv_cache_bytes_per_block` in `vllm/v1/core/kv_cache_utils.py` at 0.32.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from enginemem.engines.vllm.layout import KvGroup, KvRow, PagesCannotBeUnifiedError, one_type, page_bytes, single_group
from enginemem.units import ceil_div


class Bucket(NamedTuple):
    """Layers that need the same blocks, one row a layer, in layer order."""

    rows: Sequence[KvRow]

    @property
    def pages(self) -> Counter[int]:
        """Layers by the bytes of their page."""
        return Counter([page_bytes(row) for row in self.rows])

    @property
    def repeats(self) -> int:
        """How often the pattern of pages occurs: the layers of the commonest page."""
        return max(self.pages.values())

    @property
    def balanced(self) -> bool:
        """Whether every page size has as many layers, so that the bucket repeats one pattern."""
        return len(set(self.pages.values())) == 1


def least_padding(values: Sequence[int], *, lowest: int) -> int:
    """The number from `lowest` up whose multiples the `values` miss by the least in total, the larger of equals
    (`_approximate_gcd`)."""
    candidates = range(max(1, lowest), max(values) + 1)
    return min(candidates, key=lambda each: (sum([-value % each for value in values]), -each), default=max(1, lowest))


def buckets_of(rows: Sequence[KvRow]) -> list[Bucket]:
    """Layers put greedily into buckets of one type, in order of first appearance."""
    kinds: list[list[KvRow]] = []
    for row in dict.fromkeys([row._replace(n=1) for row in rows]):
        home = next((kind for kind in kinds if one_type([*kind, row])), None)
        if home is None:
            kinds.append([row])
        else:
            home.append(row)
    single = [row._replace(n=1) for row in rows for _ in range(row.n)]
    return [Bucket([row for row in single if row in kind]) for kind in kinds]


def packed_groups(rows: Sequence[KvRow]) -> list[KvGroup]:
    """The groups of a model on one pipeline rank, in the engine's order.

    Buckets that mix page sizes in equal numbers stay whole; the largest of them sets the layers of the other groups.
    Raises PagesCannotBeUnifiedError where a bucket of several pages would have to be split.
    """
    buckets = buckets_of(rows)
    whole = max([bucket.repeats for bucket in buckets if bucket.balanced and len(bucket.pages) > 1], default=0)
    balanced = [bucket.repeats for bucket in buckets if bucket.balanced]
    size = least_padding(balanced, lowest=whole) if whole else None
    plain = [1 if size is None or not bucket.balanced else ceil_div(bucket.repeats, size) for bucket in buckets]
    # Without a pattern, windows are cut to what the block holds anyway.
    free = [size is None and bucket.rows[0].kind == "sliding" for bucket in buckets]
    anchor = max(
        [
            _widest(bucket, len(bucket.rows) if is_free else count)
            for bucket, count, is_free in zip(buckets, plain, free, strict=True)
        ]
    )
    groups = []
    for bucket, count, is_free in zip(buckets, plain, free, strict=True):
        parts = count
        if is_free:
            parts = max(count, ceil_div(len(bucket.rows), max(anchor // page_bytes(bucket.rows[0]), 1)))
        if parts > 1 and len(bucket.pages) > 1:
            raise PagesCannotBeUnifiedError("layers with pages of several sizes would have to be split over groups")
        for first in range(parts):
            own = [(0, row) for row in bucket.rows[first::parts]]
            groups.append(single_group(own, [1] * len(own), 1))
    return groups


def _widest(bucket: Bucket, parts: int) -> int:
    """Bytes of a block of the largest of `parts` groups of a bucket."""
    return sum([ceil_div(layers, parts) * page for page, layers in bucket.pages.items()])
