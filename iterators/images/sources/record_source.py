"""The files that image records come from: one or many, whole or face-recognition packs.

Opens what ``path_imgrec`` names and answers what records there are, where they lie, which of them
belong to a part, and which labels a list or the headers give them.  It decodes nothing and draws
nothing.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.objects import shown
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import (
    EmptyRecordFileError,
    RecordIOError,
    RemoteFileError,
)
from recordio.frames.reader import RecordReader
from recordio.frames.walk import walk
from recordio.lists import read_entries
from recordio.packs.identities import (
    FacePack,
    count_identities,
    face_pack,
    in_file_order,
    joined_identities,
)
from recordio.packs.manifest import listed_packs
from recordio.partition import part_by_bytes, part_by_count

from ..augment.det_labels import Longest
from .fetched import (
    FetchedFiles,
    FetchedRecordFiles,
    Held,
    file_ends,
    file_size,
    held_pieces,
    hold_records,
    read_offsets,
    reader_versions,
)
from .header_labels import label_of, longest_labels, plain_labels, whole_labels
from .source import RecordFiles, Source

__all__ = ["RecordSource", "file_versions", "read_label_list", "read_label_vectors"]


class RecordSource:
    """Records of one or several files, numbered through.

    Parameters
    ----------
    path : str, os.PathLike or sequence of str
        A file, a folder (all its ``.rec`` files, sorted by name), a pattern, a manifest of shards
        (``.json``), which names files and their indexes, or several of these; in one string they
        are separated by semicolons.
    index : str, os.PathLike or sequence of str
        Index files in the same form, or empty: the record files are scanned.
    on_error : {"raise", "skip"}
        Whether damage met by the scan raises, or counts as one bad record behind which the scan
        goes on at the next record head.
    verify : bool
        Compare records with their checksums, in a ``.crc`` file beside each record file, when they
        are read.
    remote : RemoteSettings, optional
        How files on servers are reached, and where they are mirrored.

    Attributes
    ----------
    name : str
        The `path`, or several with semicolons between them.
    paths : list of str
        The files, URLs as messages show them.
    readers : list of RecordReader
    offsets : numpy.ndarray of int64
        Offset of every record in its file, ascending within a file.
    starts : numpy.ndarray of int64
        Number of the first record of each file.
    faces : list of FacePack
        What the files of a face-recognition pack consist of; empty for an ordinary one.  Such a
        pack has a record that says where the identity records begin; neither is an image, and
        neither is among the records here.

    Raises
    ------
    EmptyRecordFileError
        If there is no record at all.
    ChecksumFileError
        With `verify`, if a file has no checksums that belong to it.
    ValueError
        If the numbers of files and indexes differ.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str],
        index: str | os.PathLike[str] | Sequence[str] = "",
        on_error: str = "raise",
        verify: bool = False,
        remote: RemoteSettings | None = None,
    ) -> None:
        path, index = (os.fspath(p) if isinstance(p, os.PathLike) else p for p in (path, index))
        self.name = shown(path) if isinstance(path, str) else ";".join(map(shown, path))
        files, indexes, identities = listed_packs(path, index, "path_imgrec", remote)
        self.indexed = None not in indexes
        keywords = {} if remote is None else vars(remote)
        self.readers = [
            RecordReader(p, i, verify, **keywords) for p, i in zip(files, indexes, strict=True)
        ]
        self.paths = [reader.path for reader in self.readers]
        read_offsets(self.readers)
        tables = [_offsets(reader, on_error) for reader in self.readers]
        self.faces: list[FacePack] = []
        if len(self.readers) == 1 or identities:
            found = [face_pack(*pair) for pair in zip(self.readers, tables, strict=True)]
            faces = [one for one in found if one is not None]
            if len(faces) == len(found):
                count_identities(faces)
                self.faces = faces
                tables = [one.images for one in faces]
        self.tables = tables
        self.offsets = tables[0] if len(tables) == 1 else np.concatenate(tables)
        self.starts = np.cumsum([0, *(len(table) for table in tables[:-1])]).astype(np.int64)
        if not len(self.offsets):
            raise EmptyRecordFileError(
                "the file holds no records: whatever wrote it had none, so write it again or give "
                "another",
                path=self.name,
            )

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def num_identities(self) -> int | None:
        """How many identities a face-recognition pack has; None for an ordinary one."""
        return count_identities(self.faces) if self.faces else None

    @cached_property
    def identities(self) -> np.ndarray | None:
        """In a face-recognition pack, the keys ``[first, end)`` of the images of every identity."""
        return joined_identities([one.identities for one in self.faces]) if self.faces else None

    @property
    def sizes(self) -> list[int]:
        """Bytes of each file, a truncated one rounded up to whole words."""
        return [-(-file_size(reader) // 4) * 4 for reader in self.readers]

    def part(self, num_parts: int, part_index: int) -> range:
        """Records of one part, by MXNet's rule: counted with an index, else by bytes."""
        if self.indexed or self.faces:
            return part_by_count(len(self), num_parts, part_index)
        files = part_by_bytes(self.sizes, self.tables, num_parts, part_index)
        pieces = [
            (int(start) + piece.start, int(start) + piece.stop)
            for start, piece in zip(self.starts, files, strict=True)
            if len(piece)
        ]
        return range(pieces[0][0], pieces[-1][1]) if pieces else range(0)

    def blocks(self, nbytes: int) -> np.ndarray:
        """Where to cut the records into blocks of about `nbytes` of neighbours in one file."""
        edges = [0]
        for start, table in zip(self.starts, self.tables, strict=True):
            if len(table):
                limits = np.arange(table[0], table[-1] + 1, nbytes, dtype=np.int64)[1:]
                edges.extend((int(start) + np.searchsorted(table, limits)).tolist())
                edges.append(int(start) + len(table))
        return np.unique(np.array(edges, np.int64))

    def bytes_source(self) -> Source:
        """What the image stage reads."""
        kind = FetchedRecordFiles if self.is_remote else RecordFiles
        return kind(self.readers, self.offsets, self.starts)

    @property
    def is_remote(self) -> bool:
        """Whether records have to be held while the image stage reads them."""
        return any(reader.remote is not None for reader in self.readers)

    @property
    def fetched(self) -> FetchedFiles:
        """Those of its files that lie on servers."""
        return FetchedFiles(self.readers)

    def hold(self, records: np.ndarray, stripe: int = 1) -> Held:
        """Have records fetched that lie on servers; see `Held`."""
        return hold_records(self.readers, self.offsets, self.starts, records, stripe)

    def labels(
        self, listed: tuple[np.ndarray, ...] | None = None, on_error: str = "raise"
    ) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """First label of every record, float32, read from the headers.

        Parameters
        ----------
        listed : tuple of numpy.ndarray, optional
            What `read_label_list` returned; its labels then count instead.
        on_error : {"raise", "skip"}
            What becomes of records without a label.

        Returns
        -------
        labels : numpy.ndarray of float32
            NaN for records without a label.
        errors : dict of int to RecordIOError
            By record number, why these have none; empty with "raise".

        Raises
        ------
        LabelError
            With "raise", if the list has no line for a record.
        RecordIOError
            With "raise", if a record is damaged or too short for its header.
        """
        labels = np.full(len(self), np.nan, np.float32)
        errors: dict[int, RecordIOError] = {}
        for start, reader, table in zip(self.starts, self.readers, self.tables, strict=True):
            mine = labels[start : start + len(table)]
            left = plain_labels(reader, table, listed, mine)
            for first, piece in held_pieces(reader, table[left]):
                places = left[first : first + len(piece)].tolist()
                for i, offset in zip(places, piece.tolist(), strict=True):
                    try:
                        labels[start + i] = label_of(reader, offset, i, listed)
                    except RemoteFileError:
                        raise
                    except RecordIOError as error:
                        if on_error == "raise":
                            raise
                        errors[int(start) + i] = error
        return labels, errors

    def longest_label(self, limit: int) -> Longest:
        """How long the labels of detection records are, and the first one beyond a limit.

        Malformed labels and damaged records do not count.  Places are record numbers.
        """
        length, beyond, values = 0, -1, 0
        for start, reader, table in zip(self.starts, self.readers, self.tables, strict=True):
            for first, found in longest_labels(reader, table, limit):
                length = max(length, found.longest)
                if beyond < 0 <= found.too_long:
                    beyond, values = int(start) + first + found.too_long, found.values
        return Longest(length, beyond, values)

    def label_vectors(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Place and label of every record, or the error of one that cannot be read."""
        for reader, table in zip(self.readers, self.tables, strict=True):
            for number, label in enumerate(whole_labels(reader, table)):
                place = {"path": reader.path, "offset": int(table[number]), "record": number}
                yield place, label

    def place_of(self, record: int) -> dict[str, Any]:
        """Where a record lies, as `RecordIOError` names it."""
        file = int(np.searchsorted(self.starts, record, side="right")) - 1
        number = record - int(self.starts[file])
        return {
            "path": self.paths[file],
            "offset": int(self.tables[file][number]),
            "record": number,
        }

    def fingerprint(self) -> str:
        """Short text that tells these files from others; reads a few kilobytes."""
        check = 0
        for reader, table in zip(self.readers, self.tables, strict=True):
            sample = table[:: max(len(table) // 1024, 1)]
            size, head, tail = file_ends(reader, 4096)
            for piece in (str((size, len(table))).encode(), sample.tobytes(), head, tail):
                check = zlib.crc32(piece, check)
        return f"{len(self)} records, check {check:08x}"

    def version(self) -> str:
        """Short text that changes whenever one of the files does; reads no records."""
        check = zlib.crc32(np.ascontiguousarray(self.offsets).data)
        check = zlib.crc32(reader_versions(self.readers), check)
        return f"{len(self)} records, check {check:08x}"


def file_versions(paths: Sequence[str]) -> bytes:
    """Sizes and times of the last change of files; those that do not exist have neither."""
    return np.array([StoredFile(path).version() for path in paths], np.int64).tobytes()


def read_label_list(
    path: str | os.PathLike[str], label_width: int, remote: RemoteSettings | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read `label_width` labels of each line of a list, to be used instead of those of the records.

    Returns
    -------
    ids : numpy.ndarray of uint64
        Ascending; of lines with the same id the last one counts.
    labels : numpy.ndarray of float32, (len(ids), label_width)

    Raises
    ------
    LabelError
        If a line has too few numbers; MXNet reads the path as 0 instead.
    """
    ids, _, labels = read_label_vectors(path, remote, label_width)
    return ids, labels.reshape(len(ids), label_width)


def read_label_vectors(
    path: str | os.PathLike[str],
    remote: RemoteSettings | None = None,
    label_width: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read labels from a list, any number of each line, to be used instead of those of the records.

    Returns
    -------
    ids : numpy.ndarray of uint64
        Ascending; of lines with the same id the last one counts.
    starts : numpy.ndarray of int64, (len(ids) + 1,)
        Where the labels of each id begin and the last one's end.
    labels : numpy.ndarray of float32

    Raises
    ------
    LabelError
        If a line cannot be read; see `recordio.lists.read_entries`.
    """
    table = {key: labels for _, (key, labels, _) in read_entries(path, label_width, remote)}
    ids = sorted(table)
    rows = [table[i] for i in ids]
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    labels = np.fromiter(chain.from_iterable(rows), np.float32, starts[-1])
    return np.array(ids, np.uint64), starts, labels


def _offsets(reader: RecordReader, on_error: str) -> np.ndarray:
    """Ascending offsets of the records of a file."""
    try:
        return in_file_order(reader.offsets)
    except RecordIOError:
        if on_error == "raise" or reader.index_path is not None or reader.remote is not None:
            raise
    # A local file without an index.  Damage has a number, so that it is met, listed and replaced.
    return np.concatenate([piece.offsets for piece in walk(StoredFile(reader.path).map())])
