"""One pass over the contents of a pack: a function of each, in threads, with results in order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from ..header import HEADER, ID_OFFSET
from ..ordered import map_in_order
from ..packs.scanned_pack import ScannedPack
from .options import Progress

Result = TypeVar("Result")

#: What a thread takes at a time: records, and about as many bytes.
MOST_RECORDS = 256
MOST_BYTES = 1 << 22


def pass_over(
    pack: ScannedPack,
    work: Callable[[int, memoryview], Result],
    threads: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, list[Result]]]:
    """Apply a function to the content of every record; yield first numbers and results, in order.

    ``work(number, content)`` is called in several threads.  The content is all of a record that has
    no image header.
    """

    def apply(rows: range) -> tuple[int, list[Result]]:
        contents = pack.contents(rows.start, rows.stop)
        return rows.start, [work(row, content) for row, content in zip(rows, contents, strict=True)]

    with contextlib.closing(
        map_in_order(apply, _chunks(pack), threads, cancelled=cancelled)
    ) as parts:
        for first, results in parts:
            yield first, results
            if progress is not None:
                progress(first + len(results), len(pack))


def _chunks(pack: ScannedPack) -> Iterator[range]:
    begin = 0
    while begin < len(pack):
        end = int(np.searchsorted(pack.offsets, pack.offsets[begin] + MOST_BYTES))
        end = min(max(end, begin + 1), begin + MOST_RECORDS)
        yield range(begin, end)
        begin = end


def label_bytes(pack: ScannedPack, number: int) -> bytes:
    """Return all labels of a record as they stand in and after its image header, if it has one."""
    if not pack.headed[number]:
        return b""
    record = pack.record(number)
    return bytes(record[:ID_OFFSET]) + bytes(
        record[HEADER.size : HEADER.size + 4 * int(pack.flags[number])]
    )
