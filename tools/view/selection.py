"""Records that fulfil a condition, found a page at a time: nothing is kept between requests.

A search ends after a while, whether it found a page or not, and says how far it came.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from recordio.packs.expression import Condition
from recordio.packs.filter import CONTENT

from .pack import ShownPack, ShownRecord

__all__ = ["Found", "matching", "search"]

CHUNK = 256
#: Of a record that cannot be read.
OF_DAMAGED = {"format": "damaged", "decodable": False}


class Found(NamedTuple):
    """What a search found.

    Attributes
    ----------
    records : list of ShownRecord
        In the order of their positions.
    begin, end : int
        Positions that were looked at.
    complete : bool
        Whether the search came to the end (or beginning) of the pack, or to a full page.
    """

    records: list[ShownRecord]
    begin: int
    end: int
    complete: bool


def matching(condition: Condition, records: list[ShownRecord]) -> list[ShownRecord]:
    """Those of some records that fulfil a condition.

    Examples
    --------
    >>> nothing = memoryview(b"")
    >>> record = ShownRecord(0, 7, 0, 8, nothing, None, nothing, "empty")
    >>> len(matching(Condition("key == 7"), [record])), matching(Condition("bytes > 0"), [record])
    (1, [])
    """
    columns = {
        "label": lambda record: record.labels[0] if record.labels else np.nan,
        "objects": lambda record: 0 if record.objects is None else len(record.objects),
        "bytes": lambda record: len(record.content),
        "id": lambda record: np.nan if record.header is None else record.header.id,
        "key": lambda record: record.key,
    }

    def first_label(record: ShownRecord) -> float:
        if record.objects is not None:
            return float(record.objects[0, 0]) if len(record.objects) else np.nan
        return columns["label"](record)

    def column(name: str, rows: np.ndarray) -> Any:
        chosen = [records[row] for row in rows]
        if name == "labels":
            values = [r.labels if r.objects is None else r.objects[:, 0].tolist() for r in chosen]
            joined = [value for mine in values for value in mine]
            return np.array([len(mine) for mine in values], np.int64), np.array(joined, "f4")
        if name == "label":
            return np.array([first_label(record) for record in chosen], np.float32)
        if name in columns:
            return np.array([columns[name](record) for record in chosen])
        return np.array(
            [OF_DAMAGED.get(name, np.nan) if r.damage else CONTENT[name](r.content) for r in chosen]
        )

    wanted = condition(len(records), column)
    return [record for record, good in zip(records, wanted, strict=True) if good]


def search(
    pack: ShownPack,
    condition: Condition,
    start: int,
    count: int,
    backwards: bool = False,
    seconds: float = 1.5,
) -> Found:
    """Look for records from a position on, or before it.

    Parameters
    ----------
    pack : ShownPack
    condition : Condition
    start : int
        The first position to look at; the one behind the last if `backwards`.
    count : int
        How many records are wanted.
    seconds : float
        After which time to stop.

    Raises
    ------
    NotCounted
        If the first position was not reached yet.
    """
    latest = time.monotonic() + seconds
    found: list[ShownRecord] = []
    begin = end = start
    for first, stop in _chunks(pack, start, backwards):
        records = pack.records(pack.places.read(first, stop))
        good = matching(condition, records)
        if backwards:
            found, begin = good + found, first
            if len(found) > count:
                found = found[-count:]
            if len(found) == count:
                return Found(found, found[0].position, end, True)
        else:
            found, end = found + good, first + len(records)
            if len(found) >= count:
                found = found[:count]
                return Found(found, begin, found[-1].position + 1, True)
            if len(records) < stop - first:
                break
        if time.monotonic() > latest or pack.closing:
            return Found(found, begin, end, False)
    return Found(found, begin, end, True)


def _chunks(pack: ShownPack, start: int, backwards: bool) -> Iterator[tuple[int, int]]:
    if backwards:
        while start > 0:
            yield max(start - CHUNK, 0), start
            start = max(start - CHUNK, 0)
        return
    while pack.places.count is None or start < pack.places.count:
        pack.places.wait_for(start, 1)
        yield start, start + CHUNK
        start += CHUNK
