"""Records that meet a condition, found a page at a time: nothing is kept between requests.

A search ends after a while, whether it found a page or not, and says how far it came.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.frames.head import FRAMED_HEADER, HEAD, MAGIC_WORD, flag_of, length_of
from recordio.header import HEADER
from recordio.operations.expression import Condition
from recordio.operations.selection import CONTENT

from .lines import BLOCK
from .locations import Location
from .pack import ShownPack, ShownRecord

#: Records that are looked at between two looks at the clock; a single one where it is decoded.
CHUNK = 256
#: Names in conditions whose values are in the heads of plain records.
IN_HEADS = frozenset({"label", "labels", "objects", "bytes", "id", "key"})
#: Names whose values are known without the records, where sizes are kept beside the pack.
KEPT = frozenset({"width", "height", "key"})
#: Values for a record that cannot be read.
OF_DAMAGED = {"format": "damaged", "decodable": False}


class Found(NamedTuple):
    """Result of a search."""

    records: list[ShownRecord]
    begin: int  # of the positions that were looked at
    end: int
    complete: bool  # the search came to the end (or beginning) of the pack, or to a full page


def matching(condition: Condition, records: list[ShownRecord]) -> list[ShownRecord]:
    """Return those of some records that fulfil a condition."""
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

    mask = condition(len(records), column)
    return [record for record, good in zip(records, mask, strict=True) if good]


def search(
    pack: ShownPack,
    condition: Condition,
    start: int,
    count: int,
    backwards: bool = False,
    seconds: float = 1.5,
) -> Found:
    """Look for `count` records from a position on, or before it if `backwards`.

    The search stops after some seconds.  NotCounted is raised if the first position was not reached
    yet.
    """
    latest = time.monotonic() + seconds
    look, size = by_contents, 1 if "decodable" in condition.names else CHUNK
    kept = condition.names & {"width", "height"} and pack.sizes.has_sizes(seconds / 3)
    if kept and condition.names <= KEPT:
        look, size = by_sizes, BLOCK
    elif condition.names <= (IN_HEADS | KEPT if kept else IN_HEADS) and pack.samples is None:
        look, size = by_heads, BLOCK
    records: list[ShownRecord] = []
    begin = end = start
    for first, stop in _chunks(pack, start, backwards, size):
        table = pack.locations.table(first, stop)
        good = look(pack, condition, first, table)
        if backwards:
            records, begin = (good + records)[-count:], first
            if len(records) == count:
                return Found(records, records[0].position, end, True)
        else:
            records, end = (records + good)[:count], first + len(table)
            if len(records) == count:
                return Found(records, begin, records[-1].position + 1, True)
            if len(table) < stop - first:
                break
        if time.monotonic() > latest or pack.closing:
            return Found(records, begin, end, False)
    return Found(records, begin, end, True)


def by_contents(
    pack: ShownPack, condition: Condition, first: int, table: np.ndarray
) -> list[ShownRecord]:
    """Return the records of a table of keys and offsets that fulfil a condition."""
    return matching(condition, _records(pack, first, table, range(len(table))))


def by_sizes(
    pack: ShownPack, condition: Condition, first: int, table: np.ndarray
) -> list[ShownRecord]:
    """Return such records for a condition on kept sizes and keys; no other record is read."""
    columns = {"key": table[:, 0], **_sizes(pack, first, table)}
    mask = condition(len(table), lambda name, rows: columns[name][rows])
    return _records(pack, first, table, np.flatnonzero(mask))


def _sizes(pack: ShownPack, first: int, table: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(("width", "height"), pack.sizes.of(first, table).T, strict=True))


def _records(pack: ShownPack, first: int, table: np.ndarray, rows: Any) -> list[ShownRecord]:
    return pack.records(Location(first + int(row), *table[row].tolist()) for row in rows)


def by_heads(
    pack: ShownPack, condition: Condition, first: int, table: np.ndarray
) -> list[ShownRecord]:
    """Return such records for a condition on labels, bytes, ids and keys, and on kept sizes.

    The heads of records in one part with one label are read by NumPy; all others are looked at one
    by one.
    """
    keys, offsets = table[:, 0], table[:, 1]
    data = StoredFile(pack.path).map()
    room = len(data) - FRAMED_HEADER.itemsize + 1
    if room < 1:
        return by_contents(pack, condition, first, table)
    inside = (offsets >= 0) & (offsets < room) & (offsets % 4 == 0)
    every_byte = np.ndarray(room, FRAMED_HEADER, data, strides=(1,))
    heads = every_byte[np.where(inside, offsets, 0)]
    length = length_of(heads["lrec"]).astype(np.int64)
    plain = inside & (heads["magic"] == MAGIC_WORD) & (flag_of(heads["lrec"]) == 0)
    plain &= (length >= HEADER.size) & (offsets + HEAD.itemsize + length <= len(data))
    plain &= (heads["flag"] == 0) & (heads["id2"] == 0)
    rows = np.flatnonzero(plain)
    columns = {
        "label": heads["label"][rows],
        "objects": np.zeros(len(rows), np.int64),
        "bytes": length[rows] - HEADER.size,
        "id": heads["id"][rows],
        "key": keys[rows],
    }
    if not condition.names <= IN_HEADS:
        sizes = _sizes(pack, first, table)
        columns |= {name: values[rows] for name, values in sizes.items()}

    def column(name: str, chosen: np.ndarray) -> Any:
        if name == "labels":
            return np.ones(len(chosen), np.int64), columns["label"][chosen]
        return columns[name][chosen]

    mask = ~plain
    mask[rows] = condition(len(rows), column)
    records = _records(pack, first, table, np.flatnonzero(mask))
    doubtful = [record for record in records if not plain[record.position - first]]
    left_out = {record.position for record in doubtful}
    left_out -= {record.position for record in matching(condition, doubtful)}
    return [record for record in records if record.position not in left_out]


def _chunks(pack: ShownPack, start: int, backwards: bool, size: int) -> Iterator[tuple[int, int]]:
    if backwards:
        while start > 0:
            yield max(start - size, 0), start
            start = max(start - size, 0)
        return
    while pack.locations.count is None or start < pack.locations.count:
        pack.locations.wait_for(start, 1)
        yield start, start + size
        start += size
