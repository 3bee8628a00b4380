"""A record file with what stands beside it: its index, class names and the names of its files.

This is what commands that read records have in common.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from recordio import IRHeader, RecordReader
from recordio.bytes.files import StoredFile
from recordio.bytes.mapping import check_kept
from recordio.content import WIDE, has_wide_header, read_payload
from recordio.errors import IndexFileError, RecordHeaderError
from recordio.frames.index_file import read_index
from recordio.frames.walk import walk
from recordio.lists import ListEntry
from recordio.packs.classes import find_classes, read_classes
from recordio.packs.identities import FacePack, face_pack, in_file_order
from recordio.packs.source import pack_files, pack_prefix

from .console import progress_bar
from .image_list import read_list
from .payloads import labels_of

__all__ = [
    "Record",
    "RecordPack",
    "keys_by_offset",
    "name_of",
    "pack_prefix",
    "whole_records",
]


class Record(NamedTuple):
    """One record of a pack.

    Attributes
    ----------
    position : int
        Its place in the pack, from 0.
    key : int
        Its key in the index; the position without one.
    header : IRHeader
        The image header.
    content : memoryview
        What follows the header.
    kind : str
        What `kind_of` says about the content.
    """

    position: int
    key: int
    header: IRHeader
    content: memoryview
    kind: str

    @property
    def labels(self) -> list[float]:
        """The labels in the header."""
        return labels_of(self.header)


def whole_records(path: str, index: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and offsets of the whole records of a file, also of a damaged one.

    Parameters
    ----------
    path : str
        The record file.
    index : str, optional
        The index that numbers them; see `recordio.frames.walk.walk`.
    """
    lines = _index_lines(index)
    pieces = walk(StoredFile.at(path).map(), listed=None if lines is None else lines[1])
    found = [np.empty((2, 0), np.int64)]
    found += [np.stack([p.numbers, p.offsets]) for p in pieces if not p.is_damage]
    numbers, offsets = np.concatenate(found, axis=1)
    return numbers, offsets


def keys_by_offset(index: str | None) -> dict[int, int] | None:
    """Key of the record at each offset; None without an index that can be read."""
    if (lines := _index_lines(index)) is None:
        return None
    keys, offsets = lines
    return dict(zip(offsets.tolist(), keys.tolist(), strict=True))


def _index_lines(index: str | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Keys and offsets of an index; None without one that can be read."""
    try:
        return None if index is None else read_index(index)
    except IndexFileError:
        return None


class RecordPack:
    """The records of one file.

    Parameters
    ----------
    path : str
        The record file, or its name without ``.rec``.  Its index ``PREFIX.idx`` is used if there
        is one.
    progress : bool, optional
        Show a progress bar while iterating; by default where standard error is a terminal.
    cancelled : callable, optional
        Asked between records; when true, `KeyboardInterrupt` is raised.

    Attributes
    ----------
    path, prefix : str
        The record file, and the same without its suffix.
    reader : RecordReader
        Gives the records as they are.

    Raises
    ------
    OSError
        The file cannot be read.
    RecordIOError
        File or index are damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from recordio import RecordWriter, pack
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with RecordWriter(path) as writer:
    ...     _ = writer.write(pack(IRHeader(0, 3.0, 7, 0), b"content"))
    >>> for record in RecordPack(str(path)):
    ...     print(record.position, record.header.id, record.labels, bytes(record.content))
    0 7 [3.0] b'content'
    """

    def __init__(
        self,
        path: str,
        progress: bool | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.prefix = pack_prefix(path)
        self.file, index = pack_files(path)
        self.reader = RecordReader(self.file, index)
        self.path = self.reader.path
        self._progress = progress
        self._cancelled = cancelled
        self._part: np.ndarray | None = None
        self._beside: dict[str, Any] = {}  # files that were read already, shared with parts

    def __len__(self) -> int:
        return len(self.positions())

    def __iter__(self) -> Iterator[Record]:
        """The records with their headers; without the identities of a face-recognition pack.

        Raises
        ------
        RecordHeaderError
            A record has no image header.
        TruncatedRecordError
            The file became shorter while the record was worked on.
        """
        for position in self.watched(self.positions()):
            whole = self.reader[position]
            header, content, kind = read_payload(whole)
            if header is None:
                wide = has_wide_header(whole)
                raise RecordHeaderError(
                    WIDE
                    if wide
                    else "it has no image header; recordio cat --raw gives records as they are",
                    path=self.path,
                    record=position,
                )
            yield Record(position, int(self.reader.keys[position]), header, content, kind)
            check_kept(whole, path=self.path, record=position)

    def watched(self, positions: Any) -> Iterator[int]:
        """Count positions with a progress bar, as long as nobody cancels."""
        name = os.path.basename(self.path)
        with progress_bar(len(positions), name, "records", self._progress) as advance:
            for position in positions:
                if self._cancelled():
                    raise KeyboardInterrupt
                yield int(position)
                advance(1)

    def place(self, record: Record) -> dict[str, Any]:
        """Where a record is, for errors."""
        return {"path": self.path, "record": record.position, "record_id": record.header.id}

    @property
    def without_images(self) -> int:
        """How many records only describe the others: those of face-recognition packs do."""
        return len(self.reader) - len(self)

    def part(self, positions: np.ndarray) -> RecordPack:
        """Some of the records, with the same files beside them.

        Parameters
        ----------
        positions : numpy.ndarray
            Places in the whole pack.
        """
        result = copy.copy(self)
        result._part = positions
        return result

    def everything(self) -> Any:
        """Positions of all records, those that list identities too; of a part those in it."""
        return range(len(self.reader)) if self._part is None else self._part

    def positions(self) -> Any:
        """Positions of the records without those that list identities; of a part those in it."""
        if self._part is not None:
            return self._part
        return range(len(self.reader)) if self._images is None else self._images

    @cached_property
    def faces(self) -> FacePack | None:
        """The identities and images of a face-recognition pack; None for an ordinary one."""
        return face_pack(self.reader, in_file_order(self.reader.offsets))

    @cached_property
    def _images(self) -> np.ndarray | None:
        if self.faces is None:
            return None
        return np.flatnonzero(np.isin(self.reader.offsets, self.faces.images))

    def classes(self, path: str | None = None) -> dict[int, str]:
        """The folder of each label, from PREFIX.classes.txt; empty where there is none.

        Parameters
        ----------
        path : str, optional
            Another file with them.
        """
        if path is not None:
            return read_classes(path)
        return find_classes(self.file)

    def names(self) -> dict[int, ListEntry]:
        """The line of each id in PREFIX.lst; empty where there is no list.

        Bad lines are passed over: a record without a line gets a name made of its key.
        """
        if "names" not in self._beside:
            path = f"{self.prefix}.lst"
            entries = read_list(path).entries if os.path.isfile(path) else []
            self._beside["names"] = {entry.id: entry for entry in entries}
        return self._beside["names"]


def name_of(record: Record, names: dict[int, ListEntry], suffixes: tuple[str, ...]) -> str:
    """The path of the file that a record was made of, or else its key, with a suffix that fits.

    Parameters
    ----------
    record : Record
        The record.
    names : dict of int to ListEntry
        What `RecordPack.names` returned; a line counts only if its label is that of the record.
    suffixes : tuple of str
        What the name may end with; the first is given to other names.

    Returns
    -------
    str
        A path with ``/`` between its parts.
    """
    entry = names.get(record.header.id)
    if entry is None:
        return f"{record.key}{suffixes[0]}"
    label = entry.labels[0]  # six digits behind the point
    if abs(label - record.labels[0]) > 1e-6 + 1e-5 * abs(label):
        return f"{record.key}{suffixes[0]}"
    stem, suffix = os.path.splitext(entry.path)
    return entry.path if suffix.lower() in suffixes else f"{stem}{suffixes[0]}"
