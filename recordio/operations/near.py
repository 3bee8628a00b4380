"""Hashes of 64 bits that differ in few of them, found among millions.

Two hashes that differ in at most d bits, cut into m bands, agree to at most d // m bits in one band
at least.  So only hashes in neighbouring buckets of some band are compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ..packs.scanned_pack import spans

BITS = 64
#: Beyond, chance makes neighbours of unlike pictures, and every bucket has to be compared.
MOST_DISTANCE = 16
#: Bands are at most so wide: there is a table of all values.
WIDEST_BAND = 22
#: Pairs compared at a time.
MOST_PAIRS = 1 << 20


def near_pairs(hashes: np.ndarray, distance: int) -> Iterator[np.ndarray]:
    """Find the pairs of hashes that differ in at most some number of bits, 0 to `MOST_DISTANCE`.

    Hashes are uint64 and all different.  A pair of positions may come several times, and either way
    round.
    """
    bands = _bands(len(hashes), distance)
    edges = [BITS * band // bands for band in range(bands + 1)]
    for low, high in itertools.pairwise(edges):
        values = (hashes >> np.uint64(low)) & np.uint64((1 << (high - low)) - 1)
        order = np.argsort(values, kind="stable")
        values = values[order].astype(np.int64)
        sizes = np.bincount(values, minlength=1 << (high - low))
        starts = np.cumsum(sizes) - sizes
        for mask in _masks(high - low, distance // bands):
            yield from _compared(hashes, distance, order, values, sizes, starts, mask)


def _bands(count: int, distance: int) -> int:
    """Choose the number of bands that makes the fewest comparisons."""

    def work(bands: int) -> float:
        width = BITS / bands
        probes = sum(math.comb(math.ceil(width), bits) for bits in range(distance // bands + 1))
        return bands * probes * (count * count / 2**width + 10 * count)

    return min(range(math.ceil(BITS / WIDEST_BAND), MOST_DISTANCE + 2), key=work)


def _masks(width: int, most: int) -> Iterator[int]:
    for bits in range(most + 1):
        for positions in itertools.combinations(range(width), bits):
            yield sum(1 << position for position in positions)


def _compared(
    hashes: np.ndarray,
    distance: int,
    order: np.ndarray,
    values: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    mask: int,
) -> Iterator[np.ndarray]:
    """Find the pairs between each bucket and the one whose value differs by `mask`."""
    if mask:
        mine = np.flatnonzero(values < values ^ mask)
        buckets = values[mine] ^ mask
        first, counts = starts[buckets], sizes[buckets]
    else:  # inside of the same bucket: with those after it
        mine = np.arange(len(values))
        first = mine + 1
        counts = starts[values] + sizes[values] - first
    done = np.cumsum(counts)
    begin = 0
    while begin < len(mine):
        before = int(done[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(done, before + MOST_PAIRS, "right")), begin + 1)
        rows_a = order[np.repeat(mine[begin:end], counts[begin:end])]
        rows_b = order[spans(first[begin:end], counts[begin:end])]
        near = np.bitwise_count(hashes[rows_a] ^ hashes[rows_b]) <= distance
        if near.any():
            yield np.stack([rows_a[near], rows_b[near]], -1)
        begin = end


def groups_of(count: int, pairs: Iterator[np.ndarray]) -> np.ndarray:
    """Join `count` things that pairs connect, also through others; find the first of each group.

    >>> groups_of(5, iter([np.array([[3, 1], [4, 3]])])).tolist()
    [0, 1, 2, 1, 1]
    """
    first = np.arange(count)
    for some in pairs:
        roots = some
        while len(roots):
            roots = first[roots]
            while (first[roots] != roots).any():
                roots = first[roots]
            roots = roots[roots[:, 0] != roots[:, 1]]
            # Of several that would change one, the least wins; the others are tried again.
            np.minimum.at(first, roots.max(1, initial=0), roots.min(1, initial=count))
    while (first[first] != first).any():
        first = first[first]
    return first
