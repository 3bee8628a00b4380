"""The files that image records come from: one or many, whole or face-recognition packs.

Opens what ``path_imgrec`` names and answers what records there are, where they lie, which of them
belong to a part, and which labels a list or the headers give them.  It decodes nothing and draws
nothing.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from itertools import chain, groupby
from typing import Any, Self

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.objects import redacted_url
from recordio.bytes.remote.settings import RemoteSettings
from recordio.containers.container import USUAL, BlockReader, Choice
from recordio.errors import (
    EmptyRecordFileError,
    RecordIOError,
    RemoteFileError,
)
from recordio.header import IRHeader, unpack
from recordio.list_files import read_entries
from recordio.notes import Notes
from recordio.packs.fields_meta import FieldMeta, agreed
from recordio.packs.identities import Identities, count_identities, joined_identities
from recordio.packs.open_pack import OpenPack, open_fields, open_listed
from recordio.partition import part_by_bytes, part_by_count

from ..augment.det_geometry import Longest
from .container_source import container_source
from .fetched import (
    FetchedFiles,
    FetchedRecordFiles,
    PinnedRecords,
    absences,
    file_ends,
    numberings,
    pin_records,
    pinned_pieces,
    read_offsets,
)
from .header_labels import label_of, longest_labels, plain_labels, whole_labels
from .source import JoinedSources, RecordFiles, Source

#: Bytes of blocks that are shuffled together, where contents are read in blocks: twice as many are
#: kept, or four blocks.  Other files beside such are cut into blocks of `BLOCK_BYTES`.
MIXED_BYTES, BLOCK_BYTES = 1 << 29, 1 << 23
#: Records that are asked for their ids where a list lacks their keys.
PROBED = 5


class RecordSource:
    """Records of one or several files, numbered through.

    The files of a face-recognition pack, alone or in a manifest, are read without the records that
    list its identities.
    """

    def __init__(self, files: Sequence[OpenPack], name: str, indexed: bool) -> None:
        self.files: Sequence[OpenPack] = files
        self.name: str = name
        self.indexed: bool = indexed
        tables = [file.offsets for file in files]
        #: Offset of every record in its file, ascending within it.
        self.offsets: np.ndarray = tables[0] if len(files) == 1 else np.concatenate(tables)
        #: Number of the first record of each file.
        self.starts: np.ndarray = np.cumsum([0, *map(len, tables[:-1])]).astype(np.int64)
        self._fields: dict[str, RecordSource] = {}

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | Sequence[str],
        index: str | os.PathLike[str] | Sequence[str] = "",
        on_error: str = "raise",
        verify: bool = False,
        remote: RemoteSettings | None = None,
        choice: Choice = USUAL,
    ) -> Self:
        """Open files as `recordio.packs.manifest.listed_packs` takes them, with their indexes.

        With ``on_error="skip"`` damage in a file without index counts as one bad record; with
        `verify` records are compared with the checksums in a ``.crc`` file beside each.  Of the
        samples of containers that part is used which `choice` says.
        """
        path, index = (os.fspath(p) if isinstance(p, os.PathLike) else p for p in (path, index))
        name = redacted_url(path) if isinstance(path, str) else ";".join(map(redacted_url, path))
        skip = on_error == "skip"
        ways = {"skip_errors": skip, "verify": verify}
        files = open_listed(path, index, "path_imgrec", remote, choice, **ways)
        read_offsets(files)
        alone = len(files) == 1 or (files[0].manifest and files[0].manifest.identities)
        contained = files[0].container is not None
        has_faces = alone and not contained and all([file.faces is not None for file in files])
        for file in files:
            file.everything = not has_faces
        source = cls(files, name, contained or all(file.index is not None for file in files))
        if not len(source):
            raise EmptyRecordFileError(
                "the file holds no records: whatever wrote it had none, so write it again or give "
                "another",
                path=name,
            )
        _ = source.num_identities  # files that do not list the same
        return source

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def paths(self) -> list[str]:
        """The files, URLs as messages show them."""
        return [file.path for file in self.files]

    @property
    def notes(self) -> Notes:
        """Say what was left out of containers or read in another way than somebody may expect."""
        notes = Notes()
        for file in self.files:
            notes.update(file.notes)
        return notes

    @property
    def num_identities(self) -> int | None:
        """Number of identities of a face-recognition pack; None for an ordinary one."""
        return count_identities(self.faces) if self.faces else None

    @cached_property
    def faces(self) -> list[Identities]:
        """The identities that each file of a face-recognition pack lists; empty for others."""
        return [file.faces for file in self.files if not file.everything and file.faces is not None]

    @cached_property
    def identities(self) -> np.ndarray | None:
        """In a face-recognition pack, the keys ``[first, end)`` of the images of every identity."""
        return joined_identities([one.ranges() for one in self.faces]) if self.faces else None

    @property
    def sizes(self) -> list[int]:
        """Bytes of each file, a truncated one rounded up to whole words."""
        return [-(-file.file.size() // 4) * 4 for file in self.files]

    def part(self, num_parts: int, part_index: int) -> range:
        """Records of one part, by MXNet's rule: counted with an index, else by bytes."""
        if self.indexed or self.faces:
            return part_by_count(len(self), num_parts, part_index)
        files = part_by_bytes(self.sizes, [f.offsets for f in self.files], num_parts, part_index)
        pieces = [
            (int(start) + piece.start, int(start) + piece.stop)
            for start, piece in zip(self.starts, files, strict=True)
            if len(piece)
        ]
        return range(pieces[0][0], pieces[-1][1]) if pieces else range(0)

    def blocks(self, nbytes: int) -> np.ndarray:
        """Cut the records into blocks of about `nbytes` of neighbours in one file: their edges."""
        edges = [0]
        for start, file in zip(self.starts.tolist(), self.files, strict=True):
            if len(file):
                edges.extend((start + _cuts(file, nbytes)).tolist())
                edges.append(start + len(file))
        return np.unique(np.array(edges, np.int64))

    def shuffled_blocks(self) -> tuple[np.ndarray, int] | None:
        """Find how to shuffle contents that are read in blocks: edges, and how many are mixed.

        None where any order will do, since contents are read one by one, or all may be kept.
        """
        sizes = [rows.nbytes() for rows in map(_blocked_rows, self.files) if rows is not None]
        if sum(sizes) <= MIXED_BYTES:
            return None
        edges = [0]
        for start, file in zip(self.starts.tolist(), self.files, strict=True):
            rows = _blocked_rows(file)
            cuts = _cuts(file, BLOCK_BYTES) if rows is None else np.array(rows.edges())
            edges += [*(start + cuts).tolist(), start + len(file)]
        table = np.unique(np.array(edges, np.int64))
        sizes += [f.file.size() for f in self.files if _blocked_rows(f) is None]
        return table, max(MIXED_BYTES * (len(table) - 1) // sum(sizes), 2)

    def bytes_source(self) -> Source:
        """Open the records as the image stage reads them."""
        kinds = groupby(self.files, lambda file: file.container)
        return reduce(JoinedSources, (_bytes_source(list(files)) for _, files in kinds))

    def field(self, name: str) -> Source:
        """Open a field of the records, numbered as they are.

        A pack without the field is a FieldError, and so is a record without one: here or, where
        errors are skipped, when it is fetched.  Open fields are pinned with the records.
        """
        if name not in self._fields:
            packs = open_fields(self.files, name)
            for pack in packs:
                if not pack.skip_errors:
                    pack.check_complete()
            self._fields[name] = RecordSource(packs, f"{self.name}, field {name}", True)
        return self._fields[name].bytes_source()

    @cached_property
    def images(self) -> RecordSource | None:
        """All images of samples that may have any number, numbered through; None if each is one."""
        if all(file.image_starts is None for file in self.files):
            return None
        return RecordSource([file.images for file in self.files], f"{self.name}, images", True)

    @cached_property
    def image_starts(self) -> np.ndarray | None:
        """Tell where the images of each sample begin among `images`, and the end: int64."""
        if self.images is None:
            return None
        tables = [file.image_starts for file in self.files]
        counts = [
            np.ones(len(file), np.int64) if table is None else np.diff(table)
            for file, table in zip(self.files, tables, strict=True)
        ]
        return np.append(0, np.cumsum(np.concatenate(counts)))

    def header_of(self, record: int) -> IRHeader:
        """Read the header of a record, or that of a sample which may have no image."""
        number = int(np.searchsorted(self.starts, record, side="right")) - 1
        file, row = self.files[number], record - int(self.starts[number])
        return unpack(file.record(row))[0] if file.samples is None else file.reader.header(row)

    @property
    def fields_meta(self) -> dict[str, FieldMeta]:
        """Descriptions of the fields by name; files that contradict one another: a FieldError."""
        names = {name for file in self.files for name in file.fields_meta}
        return agreed(sorted(names), [(file.path, file.fields_meta) for file in self.files])

    @property
    def _opened(self) -> list[OpenPack]:
        """All files: those of fields that were opened, too."""
        images = [] if self.images is None else [self.images]
        return [file for one in (self, *images, *self._fields.values()) for file in one.files]

    @property
    def is_remote(self) -> bool:
        """True if records have to be pinned while the image stage reads them."""
        return any(file.remote is not None for file in self._opened)

    @property
    def fetched(self) -> FetchedFiles:
        """The files that lie on servers."""
        return FetchedFiles(self._opened)

    def pin(self, records: np.ndarray, stripe: int = 1) -> PinnedRecords:
        """Have records fetched that lie on servers, with their fields; see `PinnedRecords`."""
        pinned = PinnedRecords([])
        try:
            for one in (self, *self._fields.values()):
                pinned += pin_records(one.files, one.starts, records, stripe)
            if self.images is not None:
                rows = images_of(records, self.image_starts)
                pinned += pin_records(self.images.files, self.images.starts, rows, stripe)
        except BaseException:
            pinned.release()
            raise
        return pinned

    def labels(
        self, listed: tuple[np.ndarray, ...] | None = None, on_error: str = "raise"
    ) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """Read the first label of every record from the headers, or from a list: float32.

        With ``on_error="skip"`` records without one have NaN, and the errors say why, by record.
        """
        labels = np.full(len(self), np.nan, np.float32)
        errors: dict[int, RecordIOError] = {}
        for start, file in zip(self.starts.tolist(), self.files, strict=True):
            left = plain_labels(file, listed, labels[start : start + len(file)])
            for first, piece in pinned_pieces(file, file.offsets[left]):
                for row in left[first : first + len(piece)].tolist():
                    try:
                        labels[start + row] = label_of(file, row, listed)
                    except RemoteFileError:
                        raise
                    except RecordIOError as error:
                        if on_error == "raise":
                            raise
                        errors[start + row] = error
        return labels, errors

    def note_unlisted(self, ids: np.ndarray, path: str, notes: Notes) -> None:
        """Note the records whose ids a list lacks; `ids` are those that it has, ascending.

        In a record file they are the keys of the index; a few records show whether these are ids.
        """
        for file in self.files:
            keys = np.asarray(file.keys if file.samples is None else file.reader.ids, np.uint64)
            lacking = np.flatnonzero(~np.isin(keys, ids))
            first = lacking[:PROBED].tolist()
            if file.samples is None and not all(_is_unlisted(file, row, ids) for row in first):
                continue
            for row in first:
                notes.add(f"records have no line in {path}", f"id {keys[row]}")
            if len(lacking) > PROBED:
                notes.add(f"records have no line in {path}", count=len(lacking) - PROBED)

    @property
    def image_sizes(self) -> list[np.ndarray]:
        """Width and height of every image, upright, or both 0: uint32, (n, 2), for each file."""
        return [file.image_sizes for file in self.files]

    def longest_label(self, limit: int) -> Longest:
        """Find how long the labels of detection records are, and the first one beyond a limit.

        Malformed labels and damaged records do not count.  Positions are record numbers.
        """
        length, beyond, values = 0, -1, 0
        for start, file in zip(self.starts, self.files, strict=True):
            for first, labels in longest_labels(file, limit):
                length = max(length, labels.longest)
                if beyond < 0 <= labels.too_long:
                    beyond, values = int(start) + first + labels.too_long, labels.values
        return Longest(length, beyond, values)

    def label_vectors(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield location and label of every record, or the error of one that cannot be read."""
        for file in self.files:
            for row, label in enumerate(whole_labels(file)):
                yield file.location(row), label

    def location_of(self, record: int) -> dict[str, Any]:
        """Name path, offset and number of a record, for errors."""
        file = int(np.searchsorted(self.starts, record, side="right")) - 1
        return self.files[file].location(record - int(self.starts[file]))

    def check_unchanged(self) -> None:
        """Raise RecordIOError if a container is not the file in which its samples were found."""
        for file in self.files:
            if file.container is not None:
                for reader in file.parts:
                    reader.check_version()

    def fingerprint(self) -> str:
        """Short text that tells these files from others; reads a few kilobytes."""
        check = 0
        for file in self.files:
            sample = file.offsets[:: max(len(file) // 1024, 1)]
            size, head, tail = file_ends(file, 4096)
            for piece in (str((size, len(file))).encode(), sample.tobytes(), head, tail):
                check = zlib.crc32(piece, check)
        return f"{len(self)} records, check {check:08x}"

    def version(self) -> str:
        """Short text that changes whenever one of the files does; reads no records."""
        check = zlib.crc32(np.ascontiguousarray(self.offsets).data)
        versions = np.array([file.version() for file in self.files], np.int64)
        check = zlib.crc32(versions.tobytes(), check)
        return f"{len(self)} records, check {check:08x}"


def _is_unlisted(file: OpenPack, row: int, ids: np.ndarray) -> bool:
    """Tell whether a record has an id that is not among those of a list; not if it is damaged."""
    try:
        header, _ = unpack(file.record(row))
    except RemoteFileError:
        raise
    except RecordIOError:
        return False
    return int(header.id) == int(file.keys[row]) and not np.isin(np.uint64(header.id), ids)


def _blocked_rows(file: OpenPack) -> BlockReader | None:
    """Return what reads a file block by block; None of a file that is read one by one."""
    rows = None if file.container is None else file.reader.rows
    return rows if isinstance(rows, BlockReader) else None


def _cuts(file: OpenPack, nbytes: int) -> np.ndarray:
    """Find the rows behind the first at which blocks of about `nbytes` begin."""
    rows, table, firsts = _blocked_rows(file), file.offsets, np.arange(len(file))
    if rows is not None:
        firsts = np.array(rows.edges()[:-1])
        table = firsts * rows.nbytes() // len(file)
    elif file.is_folder:
        raise ValueError(
            f"blocks of {nbytes} bytes need neighbours in a file: {file.path} is a folder"
        )
    elif file.container is not None and file.container.rows is not None:
        sizes = np.maximum(file.reader.samples.sizes, 0)
        table = np.cumsum(sizes) - sizes  # offsets may be numbers
    limits = np.arange(table[0], table[-1] + 1, nbytes, dtype=np.int64)[1:]
    return firsts[np.searchsorted(table, limits)]


def _bytes_source(packs: Sequence[OpenPack]) -> Source:
    """Open files of one kind."""
    if packs[0].container is not None:
        return container_source(packs)
    offsets = np.concatenate([pack.offsets for pack in packs])
    starts = np.cumsum([0, *map(len, packs[:-1])]).astype(np.int64)
    if any(pack.remote is not None for pack in packs):
        return FetchedRecordFiles(packs, offsets, starts)
    readers = [pack.reader for pack in packs]
    return RecordFiles(readers, offsets, starts, numberings(packs), absences(packs))


def images_of(samples: np.ndarray, starts: Any) -> np.ndarray:
    """Return the numbers of all images of some samples, which begin there."""
    pairs = zip(starts[samples].tolist(), starts[np.asarray(samples) + 1].tolist(), strict=True)
    return np.array(list(chain.from_iterable(range(*pair) for pair in pairs)), np.int64)


def file_versions(paths: Sequence[str]) -> bytes:
    """Sizes and times of the last change of files; those that do not exist have neither."""
    return np.array([StoredFile(path).version() for path in paths], np.int64).tobytes()


def read_label_list(
    path: str | os.PathLike[str], label_width: int, remote: RemoteSettings | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read so many labels of each line of a list, to be used instead of those of the records.

    Ids ascend, and of lines with the same id the last one counts.  A line with too few numbers is a
    LabelError, where MXNet reads the path as 0.
    """
    ids, _, labels = read_label_vectors(path, remote, label_width)
    return ids, labels.reshape(len(ids), label_width)


def read_label_vectors(
    path: str | os.PathLike[str],
    remote: RemoteSettings | None = None,
    label_width: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read labels from a list, any number of each line, to be used instead of those of the records.

    Returns ids, ascending; where the labels of each begin, and the last one's end; and the labels.
    Of lines with the same id the last one counts.
    """
    table = {key: labels for _, (key, labels, _) in read_entries(path, label_width, remote)}
    ids = sorted(table)
    rows = [table[i] for i in ids]
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    labels = np.fromiter(chain.from_iterable(rows), np.float32, starts[-1])
    return np.array(ids, np.uint64), starts, labels
