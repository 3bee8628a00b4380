"""Parts of data sets: the records of part k of n, by the rules of MXNet's iterators, and evenly.

Pure functions over sizes, offsets and counts; this module opens no file and draws no random
numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import index as as_integer
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

#: Ascending numbers.
Numbers = Sequence[int] | NDArray[np.int64]


def part_by_count(count: int, num_parts: SupportsIndex, part_index: SupportsIndex) -> range:
    """Return the positions of one part when records are counted, as MXNet does with an index.

    A part has ``ceil(count / num_parts)`` positions; the last ones have fewer, or none.
    """
    num_parts, part_index = _check_part(num_parts, part_index)
    step = -(-count // num_parts)
    return range(min(step * part_index, count), min(step * (part_index + 1), count))


def balanced_part(count: int, num_parts: SupportsIndex, part_index: SupportsIndex) -> range:
    """Return the positions of one part whose size differs from that of others by one at most.

    The first parts are the longer ones.
    """
    num_parts, part_index = _check_part(num_parts, part_index)
    size, longer = divmod(count, num_parts)
    start = size * part_index + min(part_index, longer)
    return range(start, start + size + (part_index < longer))


def byte_range(
    sizes: Sequence[int], num_parts: SupportsIndex, part_index: SupportsIndex
) -> tuple[int, int]:
    """Return the bytes of one part when files are cut by size, as MXNet does without an index.

    The sizes, in the order of reading, are multiples of 4.  A record belongs to the part if ``begin
    <= offset < end``, where offsets count through all files.
    """
    num_parts, part_index = _check_part(num_parts, part_index)
    for size in sizes:
        if size < 0 or size % 4:
            raise ValueError(f"a record file of {size} bytes: whole ones have a multiple of 4")
    total = sum(sizes)
    step = -(-total // num_parts)
    step += -step % 4
    return min(step * part_index, total), min(step * (part_index + 1), total)


def part_by_bytes(
    sizes: Sequence[int],
    offsets: Sequence[Numbers],
    num_parts: SupportsIndex,
    part_index: SupportsIndex,
) -> list[range]:
    """Return, for each file, the positions of the records in one part that is cut by size.

    `sizes` are in bytes; `offsets` has the ascending offsets of the records of each file.
    """
    if len(sizes) != len(offsets):
        raise ValueError(f"{len(sizes)} sizes for the offsets of {len(offsets)} files")
    begin, end = byte_range(sizes, num_parts, part_index)
    parts = []
    for start, table in zip(accumulate(sizes, initial=0), offsets, strict=False):
        find = np.searchsorted if isinstance(table, np.ndarray) else bisect_left
        parts.append(range(int(find(table, begin - start)), int(find(table, end - start))))
    return parts


def part_by_lines(
    sizes: Sequence[int], starts: Numbers, num_parts: SupportsIndex, part_index: SupportsIndex
) -> range:
    """Return the positions of the rows in one part, cut by size as MXNet does for LibSVM.

    A cut that does not fall on the start of a file moves to the next line behind it, also where it
    falls on the start of a line.

    `starts` are the ascending offsets of the rows, counted through all files.
    """
    num_parts, part_index = _check_part(num_parts, part_index)
    files = set(accumulate(sizes, initial=0))
    total = sum(sizes)
    step = -(-total // num_parts)

    def before(cut: int) -> int:
        if cut >= total:
            return len(starts)
        return int(np.searchsorted(starts, cut, side="left" if cut in files else "right"))

    return range(before(step * part_index), before(step * (part_index + 1)))


def _check_part(num_parts: SupportsIndex, part_index: SupportsIndex) -> tuple[int, int]:
    num_parts, part_index = as_integer(num_parts), as_integer(part_index)
    if num_parts < 1:
        raise ValueError(f"num_parts must be at least 1, not {num_parts}")
    if not 0 <= part_index < num_parts:
        raise ValueError(f"part_index must be in 0 to {num_parts - 1}, not {part_index}")
    return num_parts, part_index
