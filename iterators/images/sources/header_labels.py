"""Labels from the headers of records, for all records of a file at once.

Nearly every record begins with a plain head, whose label is taken from a table of heads.  Where
records are large and lie on a server, only their heads are fetched; see `bytes.remote.heads`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recordio.bytes.mapping import is_lost
from recordio.containers.samples import NO_CONTENT
from recordio.errors import LabelError, RecordIOError, RemoteFileError
from recordio.frames.head import FRAMED_HEADER, HEAD, MAGIC_WORD, flag_of, length_of
from recordio.header import HEADER, unpack
from recordio.packs.open_pack import OpenPack

from ..augment.det_geometry import Longest, longest
from .fetched import far_heads, is_far, mapped, pinned_pieces

#: The frame and the header of a record in one piece, and the first value behind them.
PLAIN = np.dtype([*FRAMED_HEADER.descr, ("first", "<f4")])
#: The same with as many values as fit into a kilobyte, which is 49 objects of five.
MOST_VALUES = 248
LABELLED = np.dtype([*FRAMED_HEADER.descr, ("values", "<f4", MOST_VALUES)])


def plain_labels(
    pack: OpenPack, listed: tuple[np.ndarray, ...] | None, labels: np.ndarray
) -> np.ndarray:
    """Fill in the first labels of records in one piece; returns the rows of all others.

    Ids and labels that are listed count instead of those in the headers.
    """
    if pack.samples is not None:
        return _sample_labels(pack, listed, labels)
    view, table = mapped(pack), pack.offsets
    if pack.reader.checksums is not None:  # all of each record has to be read
        return np.arange(len(table))
    is_filled = np.zeros(len(table), bool)
    for begin, head in _heads(pack, view):
        mine = slice(begin, begin + len(head))
        ends = table[mine] + HEAD.itemsize + head["lrec"]  # whole, as the kind in the top bits is 0
        num_values = np.maximum(head["flag"], 1).astype(np.int64)  # `first` is read in any case
        good = _is_whole(head) & (ends + 3 < len(view))
        good &= HEADER.size + 4 * num_values <= head["lrec"]
        values = np.where(head["flag"] == 0, head["label"], head["first"])
        values, is_listed = _listed_labels(values, head["id"], listed)
        good &= is_listed
        labels[mine][good] = values[good]
        is_filled[mine] = good
    return np.arange(len(table)) if is_lost(view) else np.flatnonzero(~is_filled)


def _listed_labels(
    labels: np.ndarray, ids: np.ndarray, listed: tuple[np.ndarray, ...] | None
) -> tuple[np.ndarray, Any]:
    """Return the labels that a list has for some ids, if there is one, and which it has."""
    if listed is None:
        return labels, True
    listed_ids, vectors = listed
    if not len(listed_ids):
        return labels, False
    rows = np.minimum(np.searchsorted(listed_ids, ids), len(listed_ids) - 1)
    return vectors[rows, 0], listed_ids[rows] == ids


def _sample_labels(
    pack: OpenPack, listed: tuple[np.ndarray, ...] | None, labels: np.ndarray
) -> np.ndarray:
    """Fill in the labels of a container; returns the rows of samples that have none."""
    samples: Any = pack.samples
    values, is_listed = _listed_labels(samples.first_labels(), pack.reader.ids, listed)
    good = (samples.sizes != NO_CONTENT) & is_listed
    labels[good] = values[good]
    return np.flatnonzero(~good)


def label_of(pack: OpenPack, row: int, listed: tuple[np.ndarray, ...] | None) -> float:
    """Read the first label of one record, or that of a list for its id."""
    location = pack.location(row)
    record = pack.reader.read_at(int(pack.offsets[row]), pack.number_of(row))[0]
    try:
        header, _ = unpack(b"" if record is None else record)
    except RecordIOError as error:
        raise error.at(**location) from None
    if listed is None:
        return header.label if header.flag == 0 else header.label[0]
    ids, labels = listed
    line = int(np.searchsorted(ids, np.uint64(header.id)))
    if line == len(ids) or ids[line] != header.id:
        raise LabelError(
            "the list of labels has no line for this id", record_id=header.id, **location
        )
    return labels[line, 0]


def longest_labels(pack: OpenPack, limit: int) -> Iterator[tuple[int, Longest]]:
    """Yield what `longest` finds in a file, in pieces with the rows of their first records.

    Of records whose heads alone are fetched only those are read that may have the longest label.
    """
    if pack.samples is not None:
        yield 0, _longest_of_samples(np.diff(pack.samples.label_starts()), limit)
        return
    if not is_far(pack):
        for first, piece in pinned_pieces(pack, pack.offsets):
            yield first, longest(pack.reader, piece, limit)
        return
    length, beyond = 0, -1
    for first, head in far_heads(pack, PLAIN):
        counts = head["flag"].astype(np.int64)
        counts[head["magic"] != MAGIC_WORD] = 0  # damaged, and does not count
        fits = length_of(head["lrec"]) >= HEADER.size  # the header is in the first part
        counts[(head["magic"] == MAGIC_WORD) & ~fits] = limit
        for position in np.argsort(-counts, kind="stable").tolist():
            if not length < counts[position] <= limit:
                continue
            length = max(length, _longest_at(pack, first + position, limit).longest)
        for position in np.flatnonzero((counts > limit) | ((counts == limit) & ~fits)).tolist():
            if beyond < 0:
                labels = _longest_at(pack, first + position, limit)
                if labels.too_long >= 0:
                    beyond = first + position
                    yield beyond, labels
    yield 0, Longest(length, -1, 0)


def _longest_of_samples(counts: np.ndarray, limit: int) -> Longest:
    longest_one = int(counts[counts <= limit].max(initial=0))
    too_long = np.flatnonzero(counts > limit)
    if not len(too_long):
        return Longest(longest_one, -1, 0)
    return Longest(longest_one, int(too_long[0]), int(counts[too_long[0]]))


def _longest_at(pack: OpenPack, row: int, limit: int) -> Longest:
    labels = Longest(0, -1, 0)
    for _, piece in pinned_pieces(pack, pack.offsets[row : row + 1]):
        labels = longest(pack.reader, piece, limit)
    return labels


def whole_labels(pack: OpenPack) -> Iterator[Any]:
    """Yield the label of every record as `unpack` gives it, or the error of reading it.

    Where a server does not give them, a RemoteFileError is raised.
    """
    if pack.samples is not None:
        for row in range(len(pack)):
            yield _sample_label(pack, row)
        return
    if is_far(pack) and pack.reader.checksums is None:
        for first, heads in far_heads(pack, LABELLED):
            counts = heads["flag"].astype(np.int64)
            good = _is_whole(heads) & (heads["lrec"] >= HEADER.size + 4 * counts)
            good &= counts <= MOST_VALUES
            for i, (count, plain) in enumerate(zip(counts.tolist(), good.tolist(), strict=True)):
                if not plain:
                    yield _whole_label(pack, first + i)
                elif count:
                    yield heads["values"][i, :count].copy()
                else:
                    yield float(heads["label"][i])
        return
    for first, piece in pinned_pieces(pack, pack.offsets):
        for row in range(first, first + len(piece)):
            yield _whole_label(pack, row)


def _sample_label(pack: OpenPack, row: int) -> Any:
    samples: Any = pack.samples
    if samples.sizes[row] == NO_CONTENT:
        return RecordIOError(samples.faults.get(row, ""), **pack.location(row))
    labels = samples.labels_of(row)
    return float(labels[0]) if len(labels) == 1 else labels


def _whole_label(pack: OpenPack, row: int) -> Any:
    try:
        record, _ = pack.reader.read_at(int(pack.offsets[row]), pack.number_of(row))
        return unpack(b"" if record is None else record)[0].label
    except RemoteFileError:
        raise
    except RecordIOError as error:
        return error


def _heads(pack: OpenPack, view: memoryview) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the heads of the records of a file; zeros where it ends within one."""
    if is_far(pack):
        yield from far_heads(pack, PLAIN)
        return
    count = max(len(view) - PLAIN.itemsize + 1, 0)
    everywhere = np.ndarray(count, PLAIN, view, strides=(1,))  # one at every byte
    for begin, offsets in pinned_pieces(pack, pack.offsets):
        heads = np.zeros(len(offsets), PLAIN)
        inside = offsets < count
        heads[inside] = everywhere[offsets[inside]]
        yield begin, heads


def _is_whole(heads: np.ndarray) -> np.ndarray:
    """Tell which heads are those of records in one piece."""
    return (heads["magic"] == MAGIC_WORD) & (flag_of(heads["lrec"]) == 0)
