"""Labels from the headers of records, for all records of a file at once.

Nearly every record begins with a plain head, whose label is taken from a table of heads.  Where
records are large and lie on a server, only their heads are fetched; see `bytes.remote.heads`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recordio.bytes.mapping import is_lost
from recordio.errors import LabelError, RecordIOError, RemoteFileError
from recordio.frames.head import FRAMED_HEADER, HEAD, MAGIC_WORD, flag_of, length_of
from recordio.frames.reader import RecordReader
from recordio.header import HEADER, unpack

from ..augment.det_labels import Longest, longest
from .fetched import far_heads, held_pieces, is_far, mapped

__all__ = ["label_of", "longest_labels", "plain_labels", "whole_labels"]

#: The frame and the header of a record in one piece, and the first value behind them.
PLAIN = np.dtype([*FRAMED_HEADER.descr, ("first", "<f4")])
#: The same with as many values as fit into a kilobyte, which is 49 objects of five.
MOST_VALUES = 248
LABELLED = np.dtype([*FRAMED_HEADER.descr, ("values", "<f4", MOST_VALUES)])


def plain_labels(
    reader: RecordReader,
    table: np.ndarray,
    listed: tuple[np.ndarray, ...] | None,
    labels: np.ndarray,
) -> np.ndarray:
    """Fill in the first labels of records in one piece; returns the rows of all others.

    Ids and labels that are listed count instead of those in the headers.
    """
    view = mapped(reader)
    if reader.checksums is not None:  # all of each record has to be read
        return np.arange(len(table))
    found = np.zeros(len(table), bool)
    for begin, head in _heads(reader, table, view):
        mine = slice(begin, begin + len(head))
        ends = table[mine] + HEAD.itemsize + head["lrec"]  # whole, as the kind in the top bits is 0
        num_values = np.maximum(head["flag"], 1).astype(np.int64)  # `first` is read in any case
        good = _is_whole(head) & (ends + 3 < len(view))
        good &= HEADER.size + 4 * num_values <= head["lrec"]
        values = np.where(head["flag"] == 0, head["label"], head["first"])
        if listed is not None:
            ids, vectors = listed
            rows = np.minimum(np.searchsorted(ids, head["id"]), len(ids) - 1)
            good &= ids[rows] == head["id"] if len(ids) else False
            values = vectors[rows, 0] if len(ids) else values
        labels[mine][good] = values[good]
        found[mine] = good
    return np.arange(len(table)) if is_lost(view) else np.flatnonzero(~found)


def label_of(
    reader: RecordReader, offset: int, number: int, listed: tuple[np.ndarray, ...] | None
) -> float:
    """Read the first label of one record, or that of a list for its id."""
    location = {"path": reader.path, "offset": offset, "record": number}
    record = reader.read_at(offset, number)[0]
    try:
        header, _ = unpack(b"" if record is None else record)
    except RecordIOError as error:
        raise error.at(**location) from None
    if listed is None:
        return header.label if header.flag == 0 else header.label[0]
    ids, labels = listed
    row = int(np.searchsorted(ids, np.uint64(header.id)))
    if row == len(ids) or ids[row] != header.id:
        raise LabelError(
            "the list of labels has no line for this id", record_id=header.id, **location
        )
    return labels[row, 0]


def longest_labels(
    reader: RecordReader, table: np.ndarray, limit: int
) -> Iterator[tuple[int, Longest]]:
    """Yield what `longest` finds in a file, in pieces with the rows of their first records.

    Of records whose heads alone are fetched only those are read that may have the longest label.
    """
    if not is_far(reader, table):
        for first, piece in held_pieces(reader, table):
            yield first, longest(reader, piece, limit)
        return
    known, beyond = 0, -1
    for first, head in far_heads(reader, table, PLAIN):
        counts = head["flag"].astype(np.int64)
        counts[head["magic"] != MAGIC_WORD] = 0  # damaged, and does not count
        fits = length_of(head["lrec"]) >= HEADER.size  # the header is in the first part
        counts[(head["magic"] == MAGIC_WORD) & ~fits] = limit
        for position in np.argsort(-counts, kind="stable").tolist():
            if not known < counts[position] <= limit:
                continue
            known = max(known, _longest_at(reader, table[first + position], limit).longest)
        for position in np.flatnonzero((counts > limit) | ((counts == limit) & ~fits)).tolist():
            if beyond < 0:
                found = _longest_at(reader, table[first + position], limit)
                if found.too_long >= 0:
                    beyond = first + position
                    yield beyond, found
    yield 0, Longest(known, -1, 0)


def _longest_at(reader: RecordReader, offset: int, limit: int) -> Longest:
    found = Longest(0, -1, 0)
    for _, piece in held_pieces(reader, np.array([offset], np.int64)):
        found = longest(reader, piece, limit)
    return found


def whole_labels(reader: RecordReader, table: np.ndarray) -> Iterator[Any]:
    """Yield the label of every record as `unpack` gives it, or the error of reading it.

    Where a server does not give them, a RemoteFileError is raised.
    """
    if is_far(reader, table) and reader.checksums is None:
        for first, heads in far_heads(reader, table, LABELLED):
            counts = heads["flag"].astype(np.int64)
            good = _is_whole(heads) & (heads["lrec"] >= HEADER.size + 4 * counts)
            good &= counts <= MOST_VALUES
            for i, (count, plain) in enumerate(zip(counts.tolist(), good.tolist(), strict=True)):
                if not plain:
                    yield _whole_label(reader, int(table[first + i]), first + i)
                elif count:
                    yield heads["values"][i, :count].copy()
                else:
                    yield float(heads["label"][i])
        return
    for first, piece in held_pieces(reader, table):
        for number, offset in enumerate(piece.tolist(), first):
            yield _whole_label(reader, offset, number)


def _whole_label(reader: RecordReader, offset: int, number: int) -> Any:
    try:
        record, _ = reader.read_at(offset, number)
        return unpack(b"" if record is None else record)[0].label
    except RemoteFileError:
        raise
    except RecordIOError as error:
        return error


def _heads(
    reader: RecordReader, table: np.ndarray, view: memoryview
) -> Iterator[tuple[int, np.ndarray]]:
    """The heads of the records of a file; zeros where it ends within one."""
    if is_far(reader, table):
        yield from far_heads(reader, table, PLAIN)
        return
    count = max(len(view) - PLAIN.itemsize + 1, 0)
    everywhere = np.ndarray(count, PLAIN, view, strides=(1,))  # one at every byte
    for begin, offsets in held_pieces(reader, table):
        heads = np.zeros(len(offsets), PLAIN)
        inside = offsets < count
        heads[inside] = everywhere[offsets[inside]]
        yield begin, heads


def _is_whole(heads: np.ndarray) -> np.ndarray:
    """Tell which heads are those of records in one piece."""
    return (heads["magic"] == MAGIC_WORD) & (flag_of(heads["lrec"]) == 0)
