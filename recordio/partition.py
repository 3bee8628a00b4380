"""Which records belong to part k of n, by the rules of MXNet's iterators.

Pure functions over sizes, offsets and counts; this module opens no file and draws no random
numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from operator import index as as_integer

import numpy as np

__all__ = ["byte_range", "part_by_bytes", "part_by_count", "part_by_lines"]


def part_by_count(count, num_parts, part_index):
    """Positions of one part when records are counted, as MXNet does with an index.

    Parameters
    ----------
    count : int
        Number of records, in the order of their offsets.
    num_parts : int
        Number of parts, at least 1.
    part_index : int
        Which part, ``0 <= part_index < num_parts``.

    Returns
    -------
    range
        ``ceil(count / num_parts)`` positions; fewer, or none, in the last parts.

    Raises
    ------
    ValueError
        If there is no such part.

    Examples
    --------
    >>> [len(part_by_count(5, 4, k)) for k in range(4)]
    [2, 2, 1, 0]
    """
    num_parts, part_index = _check_part(num_parts, part_index)
    step = -(-count // num_parts)
    return range(min(step * part_index, count), min(step * (part_index + 1), count))


def byte_range(sizes, num_parts, part_index):
    """Bytes of one part when files are cut by size, as MXNet does without an index.

    Parameters
    ----------
    sizes : sequence of int
        Bytes in each file, in the order in which the files are read; multiples of 4.
    num_parts, part_index : int
        As for `part_by_count`.

    Returns
    -------
    begin, end : int
        A record belongs to the part if ``begin <= offset < end``, where offsets count through all
        files.

    Raises
    ------
    ValueError
        If there is no such part, or a size is no multiple of 4.

    Examples
    --------
    >>> byte_range([100, 60], 3, 1)
    (56, 112)
    """
    num_parts, part_index = _check_part(num_parts, part_index)
    for size in sizes:
        if size < 0 or size % 4:
            raise ValueError(f"a record file of {size} bytes: whole ones have a multiple of 4")
    total = sum(sizes)
    step = -(-total // num_parts)
    step += -step % 4
    return min(step * part_index, total), min(step * (part_index + 1), total)


def part_by_bytes(sizes, offsets, num_parts, part_index):
    """Records of one part of one or more files, cut by size.

    Parameters
    ----------
    sizes : sequence of int
        Bytes in each file.
    offsets : sequence of array of int64
        For each file the ascending offsets of its records.
    num_parts, part_index : int
        As for `part_by_count`.

    Returns
    -------
    list of range
        For each file the positions of its records that belong to the part.

    Raises
    ------
    ValueError
        As `byte_range`, or if `sizes` and `offsets` differ in length.

    Examples
    --------
    >>> part_by_bytes([40, 24], [[0, 8, 32], [0, 12]], 2, 0)
    [range(0, 2), range(0, 0)]
    >>> part_by_bytes([40, 24], [[0, 8, 32], [0, 12]], 2, 1)
    [range(2, 3), range(0, 2)]
    """
    if len(sizes) != len(offsets):
        raise ValueError(f"{len(sizes)} sizes for the offsets of {len(offsets)} files")
    begin, end = byte_range(sizes, num_parts, part_index)
    parts = []
    for start, table in zip(accumulate(sizes, initial=0), offsets, strict=False):
        find = np.searchsorted if isinstance(table, np.ndarray) else bisect_left
        parts.append(range(int(find(table, begin - start)), int(find(table, end - start))))
    return parts


def part_by_lines(sizes, starts, num_parts, part_index):
    """Rows of one part of one or more text files, cut by size, as MXNet does for LibSVM.

    A cut that does not fall on the start of a file moves to the next line behind it, also where it
    falls on the start of a line.

    Parameters
    ----------
    sizes : sequence of int
        Bytes in each file, in the order in which the files are read.
    starts : numpy.ndarray of int64
        Ascending offsets of the rows, counted through all files.
    num_parts, part_index : int
        As for `part_by_count`.

    Returns
    -------
    range
        Positions of the rows.

    Raises
    ------
    ValueError
        If there is no such part.

    Examples
    --------
    >>> [part_by_lines([12], np.array([0, 4, 6]), 3, k) for k in range(3)]
    [range(0, 2), range(2, 3), range(3, 3)]
    """
    num_parts, part_index = _check_part(num_parts, part_index)
    files = set(accumulate(sizes, initial=0))
    total = sum(sizes)
    step = -(-total // num_parts)

    def before(cut):
        if cut >= total:
            return len(starts)
        return int(np.searchsorted(starts, cut, side="left" if cut in files else "right"))

    return range(before(step * part_index), before(step * (part_index + 1)))


def _check_part(num_parts, part_index):
    num_parts, part_index = as_integer(num_parts), as_integer(part_index)
    if num_parts < 1:
        raise ValueError(f"num_parts must be at least 1, not {num_parts}")
    if not 0 <= part_index < num_parts:
        raise ValueError(f"part_index must be in 0 to {num_parts - 1}, not {part_index}")
    return num_parts, part_index
