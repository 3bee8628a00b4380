"""An open pack: its records in the order of the file, and the files beside it.

Training, pack operations, commands, the viewer and tasks on Ray all stand on `OpenPack`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..bytes.files import StoredFile, with_mirrors
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..containers.container import USUAL, Choice, Container, chosen_kind
from ..containers.joined import JoinedRecords, open_contained
from ..containers.reader import ContainedRecords
from ..containers.samples import ContainedSamples
from ..containers.table import contained_files, container_of
from ..errors import FieldError, RecordIOError, RemoteFileError
from ..frames.index_file import read_index
from ..frames.listing import rewriting
from ..frames.mirrored import RemoteRecords
from ..frames.reader import RecordReader
from ..frames.record_bytes import map_records
from ..frames.walk import walk
from ..list_files import ListEntry, entries_among, entry_lines, open_list
from ..notes import Notes
from .classes import find_classes, labels_of_names
from .field_files import field_file, field_names
from .fields_meta import SUFFIX, FieldMeta, read_fields
from .identities import Identities, find_identities, keys_without_index, records_by_key, row_of_zero
from .manifest import ShardManifest, listed_packs
from .names import PackPaths, container_files, pack_files, pack_prefix, single_path
from .row_tables import in_file_order, rows_of
from .sizes import SizedFile, SizedRecords, SizedSamples, stored_sizes

#: The key of a record that an index does not list.
NO_KEY = -(1 << 63)


class OpenPack:
    """A record file with its index; whatever takes time is done when first asked for, and once.

    Tables have a row for each record, in the order of the file, without the records that only list
    identities, unless `everything` is wanted.  A trusted index has to list the records up to the
    end of the file, each once; what it leaves out before does not exist.  Without one the key of a
    record is its number, or one more where record 0 of a face-recognition pack lies last.  The
    reader of a pack whose index is not trusted has no index.

    The samples of a container are its records, with headers made up; `samples` has their tables.
    One of several files, `shards`, is one pack, and `file` is what messages call it.

    With `skip_errors` a stretch of damage in a file without index is one record that cannot be
    read; see `recordio.frames.walk`.
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | StoredFile,
        index: str | os.PathLike[str] | StoredFile | None = None,
        *,
        skip_errors: bool = False,
        everything: bool = False,
        trusted: bool = True,
        verify: bool = False,
        settings: RemoteSettings | None = None,
        manifest: ShardManifest | None = None,
        shards: Sequence[StoredFile] = (),
        choice: Choice = USUAL,
    ) -> None:
        files = list(shards) or [StoredFile.at(file)]
        self.file: StoredFile = files[0]
        self.index: StoredFile | None = None if index is None else StoredFile.at(index)
        #: All files with records or an index.
        self.files: list[StoredFile] = files if self.index is None else [*files, self.index]
        #: The files with records.
        self.shards = files
        #: The names as messages show them, and that of the record file without its suffix.
        self.path: str = redacted_url(os.fsdecode(file) if len(files) > 1 else self.file.name)  # type: ignore[arg-type]
        self.index_path: str | None = redacted_url(self.index.name) if self.index else None
        self.prefix: str = pack_prefix(self.path)
        self.skip_errors: bool = skip_errors
        self.everything: bool = everything
        #: The manifest that names the file, if it was opened by one.
        self.manifest = manifest
        #: The part of the samples of a container that is used.
        self.choice = choice
        self._trusted, self._verify, self._settings = trusted, verify, settings
        self._index_notes = Notes()

    def __len__(self) -> int:
        return len(self.offsets)

    # -- where the records are --------------------------------------------------------------------

    @cached_property
    def container(self) -> Container | None:
        """Find what kind of container the file is; None of a record file."""
        return chosen_kind(container_of(self.file), self.choice, self.path)

    @property
    def is_folder(self) -> bool:
        """True for a container whose contents are files of their own."""
        return self.container is not None and self.container.is_folder

    @property
    def parts(self) -> Sequence[Any]:
        """The reader of each file with records."""
        return getattr(self.reader, "parts", [self.reader])

    @property
    def samples(self) -> ContainedSamples | None:
        """The samples of a container; None of a record file."""
        return None if self.container is None else self.reader.samples

    @property
    def notes(self) -> Notes:
        """Say what was left out, or is not in the index, as far as it was opened."""
        return self._index_notes if self.samples is None else self.samples.notes

    @cached_property
    def reader(self) -> Any:
        """Open the file, as a RecordReader or a ContainedRecords; see `opened`."""
        return self.opened()

    def opened(self) -> Any:
        """Open the file anew; the lines of a trusted index number the positions.

        One that lacks records is an IndexFileError, or a note where errors are skipped.
        """
        ways: dict[str, Any] = {"skip_errors": self.skip_errors, "verify": self._verify}
        if self.container is not None and len(self.shards) > 1:
            parts = open_contained(self.shards, self.container, self._settings, **ways)
            return JoinedRecords(parts, self.path)
        if self.container is not None:
            return ContainedRecords(self.file, self.container, self._settings, **ways)
        keywords = {} if self._settings is None else vars(self._settings)
        index = self.index if self._trusted else None
        reader = RecordReader(self.file, index, self._verify, selection=True, **keywords)
        fault = None if index is None else reader._index_fault()
        if fault is not None:
            if not self.skip_errors:
                raise fault
            kind = f"indexes do not list every record of {self.path} once: {rewriting(self.path)}"
            self._index_notes.add(kind, fault.path or "")
        return reader

    @property
    def remote(self) -> RemoteRecords | None:
        """The records of a file on a server, as they are fetched; None of local ones."""
        return self.reader.remote

    @cached_property
    def lines(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Keys and offsets that the index lists, line by line; None without one."""
        if self.index is None:
            return None
        if self._trusted:
            return self.reader.keys, self.reader.offsets
        return self.index.parsed(read_index, self._settings)

    @cached_property
    def all_offsets(self) -> np.ndarray:
        """Ascending offsets of all records, those that list identities too: int64."""
        if self.lines is not None:
            return in_file_order(self.lines[1])
        try:
            return self.reader.offsets
        except RecordIOError:
            if not self.skip_errors or self.reader.remote is not None:
                raise
        # Damage has a number, so that it is met, listed and replaced.
        return np.concatenate([piece.offsets for piece in walk(map_records(self.file))])

    @cached_property
    def all_keys(self) -> np.ndarray:
        """Keys of the same records: int64."""
        if self.lines is None:
            offsets = self.all_offsets
            return keys_without_index(row_of_zero(self.reader, offsets), len(offsets))
        keys, offsets = self.lines
        return keys if offsets is self.all_offsets else keys[np.argsort(offsets, kind="stable")]

    @cached_property
    def offsets(self) -> np.ndarray:
        """Ascending offsets of the records: int64."""
        return self.without_identities(self.all_offsets)

    @cached_property
    def keys(self) -> np.ndarray:
        """Keys of the records: int64."""
        return self.without_identities(self.all_keys)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Numbers of the records in the file, by which errors name them: int64."""
        return self.without_identities(np.arange(len(self.all_offsets)))

    def without_identities(self, table: np.ndarray) -> np.ndarray:
        """Leave out the rows of records that list identities from a table of all records."""
        if self.everything or self.faces is None:
            return table
        return table[self.faces.are_images(self.all_keys)]

    # -- identities -------------------------------------------------------------------------------

    @cached_property
    def faces(self) -> Identities | None:
        """Find the identities of a face-recognition pack; None for an ordinary one.

        A RecordHeaderError says that keys were rounded so that it cannot be told which records list
        identities, or that headers are not the usual ones.
        """
        if self.container is not None or not len(self.all_offsets):
            return None
        last_key = len(self.all_offsets) - 1 if self.lines is None else int(self.lines[0].max())
        identities = find_identities(self.read_keys, last_key, self.path)
        return identities if identities is not None and identities.read_all() else None

    def image_spans(self) -> np.ndarray | None:
        """Rows ``[first, end)`` of every identity: int64, (identities, 2); None without any.

        Images that do not lie identity by identity are a RecordIOError.
        """
        if self.faces is None:
            return None
        if (self.keys[1:] < self.keys[:-1]).any():
            raise RecordIOError(
                "its images do not lie identity by identity: `recordio sort PACK PREFIX --by key` "
                "writes them so",
                path=self.path,
            )
        return np.searchsorted(self.keys, self.faces.ranges())

    def read_keys(self, keys: Sequence[int]) -> list[memoryview | bytes | None]:
        """Read records by their keys, as `records_by_key` gives them."""
        reader, offsets = self.reader, self.all_offsets
        if self.index is None:
            zero = row_of_zero(reader, offsets)
            rows = [key - (key <= zero) if key else zero for key in keys]
            return records_by_key(lambda row: reader.read_at(int(offsets[row]))[0])(rows)
        try:  # all at once, where nothing is wrong
            return list(reader.read_many([reader.position_of(key) for key in keys]))
        except RemoteFileError:
            raise
        except RecordIOError:
            return records_by_key(reader.by_key)(keys)

    # -- one record, and what lies beside them ----------------------------------------------------

    def record(self, row: int) -> memoryview:
        """Read a whole record, with its image header."""
        try:
            record, _ = self.reader.read_at(int(self.offsets[row]))
        except RecordIOError as error:
            raise error.at(record=self.number_of(row)) from None
        return memoryview(b"") if record is None else record

    def number_of(self, row: int) -> int:
        """Return the number of a record in the file, by which errors name it."""
        return row if self.everything or self.faces is None else int(self.numbers[row])

    def location(self, row: int) -> dict[str, Any]:
        """Name path, offset and number of a record, for errors."""
        if self.container is not None:
            return self.reader.location(self.number_of(row))
        offset = int(self.offsets[row])
        return {"path": self.path, "offset": offset, "record": self.number_of(row)}

    def sized_files(self) -> list[SizedFile]:
        """List the files whose records have sizes; see `recordio.packs.sizes`."""
        if self.container is None:
            return [SizedRecords(self.file, self.reader, self.all_offsets, self._settings)]
        return [SizedSamples(part) for part in self.parts]

    @cached_property
    def all_image_sizes(self) -> np.ndarray:
        """Width and height of the image of every record, those that list identities too."""
        sizes = [stored_sizes(file) for file in self.sized_files()]
        return sizes[0] if len(sizes) == 1 else np.concatenate(sizes)

    @property
    def image_sizes(self) -> np.ndarray:
        """Width and height of the image of every record, upright: uint32, (records, 2).

        Both are 0 of a record without an image.  They are read once and kept in ``PREFIX.sizes``.
        """
        return self.without_identities(self.all_image_sizes)

    @property
    def classes(self) -> dict[int, str]:
        """Names of classes, by label, as they are now; empty where there are none."""
        return (self.samples and self.samples.classes) or find_classes(self.file)

    @property
    def shown_classes(self) -> dict[int, str]:
        """Names for people to see: none where im2rec found all images in one folder, "."."""
        classes = self.classes
        return {} if list(classes.values()) == ["."] else classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each name of a class, as torchvision's data sets have it."""
        return labels_of_names(self.shown_classes)

    @cached_property
    def list_path(self) -> str | None:
        """Find its list of images, ``PREFIX.lst``; None where there is none."""
        return self._beside(".lst")

    @cached_property
    def entries(self) -> dict[int, ListEntry]:
        """Read the line of each id in the list; bad lines are passed over."""
        if self.samples is not None:
            return self._contained_entries(self.samples)
        if self.list_path is None:
            return {}
        with open_list(self.list_path, self._settings) as file:
            lines = (line for _, line in entry_lines(file, self.list_path))
            return {entry.id: entry for entry in entries_among(lines)}

    def _contained_entries(self, samples: ContainedSamples) -> dict[int, ListEntry]:
        first = self.reader.first
        return {
            first + i: ListEntry(
                first + i, tuple(samples.labels_of(i).tolist()), samples.name_of(i)
            )
            for i in range(len(samples))
        }

    @cached_property
    def checksums_path(self) -> str | None:
        """Find its checksums, ``PREFIX.crc``; None where there are none."""
        return self._beside(".crc")

    def _beside(self, suffix: str) -> str | None:
        if self.container is not None:
            return None
        file = self.file.beside(suffix)
        return file.name if file.exists() else None

    # -- several images ---------------------------------------------------------------------------

    @property
    def image_starts(self) -> np.ndarray | None:
        """Tell where the images of each sample begin among `images`; None if each is one."""
        return None if self.samples is None else self.samples.image_starts

    @cached_property
    def images(self) -> OpenPack:
        """Open all images of samples that may have any number, numbered through."""
        return self if self.image_starts is None else ImagesPack(self)

    # -- fields -----------------------------------------------------------------------------------

    @cached_property
    def field_names(self) -> list[str]:
        """Names of the fields that lie beside it, or of those that the samples of a container have.

        ``PREFIX.fields.json`` says them where there is one.  A web server lists no files: what else
        lies beside one there is not known.
        """
        if self.container is None:
            named = self._described
            return field_names(self.file, self._settings) if named is None else list(named)
        if self.container.fields is None:
            return []
        names_by_part = [
            self.container.fields(p.file, self._settings, p.samples, self.choice)
            for p in self.parts
        ]
        return sorted({name for names in names_by_part for name in names})

    @cached_property
    def _described(self) -> Mapping[str, FieldMeta] | None:
        """Read ``PREFIX.fields.json``; None where there is none."""
        return None if self.container is not None else read_fields(self.file, self._settings)

    @property
    def fields_meta(self) -> Mapping[str, FieldMeta]:
        """Descriptions of the fields by name, from ``PREFIX.fields.json``; empty without it."""
        return self._described or {}

    @cached_property
    def fields(self) -> Mapping[str, FieldPack]:
        """The packs of its fields, by name."""
        return {name: self.field(name) for name in self.field_names}

    def field(self, name: str) -> FieldPack:
        """Open the pack of one field, whose rows are those of this one; else a FieldError."""
        return open_fields([self], name)[0]

    def version(self) -> tuple[int, int]:
        """Give two numbers that change with the content; see `StoredFile.version`."""
        if len(self.shards) > 1:
            versions = [file.version() for file in self.shards]
            return sum(size for size, _ in versions), zlib.crc32(repr(versions).encode())
        if self.is_folder:
            assert self.samples is not None
            return len(self), zlib.crc32(self.samples.names.data)
        return self.file.version()

    @cached_property
    def bytes(self) -> int:
        """Bytes in all files with records."""
        if self.is_folder:
            return int(self.reader.content_sizes()[0].clip(0).sum())
        return sum(file.size() for file in self.shards)

    def close(self) -> None:
        """Let the file go."""
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class ImagesPack(OpenPack):
    """The images of a container whose samples, those of `main`, may have any number."""

    def __init__(self, main: OpenPack) -> None:
        super().__init__(main.path, settings=main._settings, shards=main.shards, choice=main.choice)
        self.main = main

    @cached_property
    def container(self) -> Container | None:
        """The kind of container that the samples are in."""
        return self.main.container

    @cached_property
    def reader(self) -> Any:
        """Open the images."""
        return self.main.reader.images()


class FieldPack(OpenPack):
    """The pack of one field of another, `main`: row i of both is the same sample, by its key.

    A sample without a record has the offset -1 and the number -1; of a container it is among the
    faults.
    """

    def __init__(
        self,
        main: OpenPack,
        name: str,
        file: StoredFile | str,
        index: StoredFile | None = None,
        **keywords: Any,
    ) -> None:
        choice = replace(main.choice, field=name)
        super().__init__(file, index, everything=True, choice=choice, **keywords)
        self.main: OpenPack = main
        self.name: str = name

    @cached_property
    def container(self) -> Container | None:
        """Find how the field lies in the container that the pack is; None of a record file."""
        return None if self.main.container is None else self.main.container.chosen(self.choice)

    @cached_property
    def reader(self) -> Any:
        """Open the file; the samples of a container keep the ids that they have there."""
        reader = super().reader
        if self.container is not None:
            reader.first = self.main.reader.first
        return reader

    @cached_property
    def rows(self) -> np.ndarray:
        """Number of the record of each sample in the file of the field; -1 where there is none."""
        if self.container is not None:
            return np.arange(len(self.all_offsets))
        if np.array_equal(self.all_keys, self.keys):
            return np.arange(len(self.keys))
        return rows_of(self.keys, self.all_keys)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Offset of the record of each sample in the file of the field: int64."""
        return np.append(self.all_offsets, -1)[self.rows]

    @cached_property
    def keys(self) -> np.ndarray:
        """Keys of the samples: int64; those of its index where the pack was opened without it."""
        main = self.main
        if main.container is not None or main.lines is not None:
            return main.keys
        beside = main.file.beside(".idx")
        if not beside.exists():
            return main.keys
        keys, offsets = beside.parsed(read_index, self._settings)
        return np.append(keys, NO_KEY)[rows_of(main.offsets, offsets)]

    @cached_property
    def numbers(self) -> np.ndarray:
        """Number of the record of each sample in the file of the field: int64."""
        return self.rows

    def number_of(self, row: int) -> int:
        """Return the number of the record of a sample in the file of the field."""
        return int(self.rows[row])

    @cached_property
    def missing(self) -> np.ndarray:
        """Rows of the samples that have no such field, though they are usable themselves: int64."""
        if self.samples is None:
            return np.flatnonzero(self.rows < 0)
        faults = self.main.samples.faults if self.main.samples is not None else {}
        return np.array(sorted(set(self.samples.faults) - set(faults)), np.int64)

    @cached_property
    def foreign(self) -> np.ndarray:
        """Keys of its records that belong to no sample: int64."""
        return np.setdiff1d(self.all_keys, self.keys)

    def record(self, row: int) -> memoryview:
        """Read the record of a sample, with its image header; see `absence`."""
        if self.rows[row] < 0 or row in getattr(self.samples, "faults", ()):
            raise self.absence(row)
        return super().record(row) if self.container is None else self.reader[row]

    def absence(self, row: int) -> FieldError:
        """Say that a sample has no such field, or why it cannot be used."""
        where = self.main.location(row)
        if self.samples is not None:
            fault = self.samples.faults.get(row, "it has no content")
            return FieldError(f"its field {self.name}: {fault}", **where)
        key = (
            f"the key {self.keys[row]}"
            if self.keys[row] != NO_KEY
            else "its key, which no index lists"
        )
        return FieldError(
            f"its field {self.name} is missing: {self.path} has no record with {key}; write it "
            "there, or leave the sample out of the pack",
            **where,
        )

    def check_complete(self) -> None:
        """Raise a FieldError if a sample has no such field, naming the first."""
        if self.samples is not None and len(self.missing) == len(self):
            names = f"its fields: {', '.join(self.main.field_names) or 'none'}"
            raise FieldError(f"no sample has a field {self.name}; {names}", path=self.main.path)
        if len(self.missing):
            error = self.absence(int(self.missing[0]))
            if len(self.missing) > 1:
                error.reason += f" (and so for {len(self.missing) - 1} more)"
            raise error.at()


def open_fields(packs: Sequence[OpenPack], name: str) -> list[FieldPack]:
    """Open one field of several packs; a pack without it is a FieldError."""
    files = [field_file(pack.file, name) for pack in packs]
    for pack, file in zip(packs, files, strict=True):
        unnamed = pack._described is not None and name not in pack._described
        there = file.exists() if pack.container is None else pack.container.fields is not None
        if unnamed or not there:
            names = ", ".join(pack.field_names) or "none"
            where = f": there is no {redacted_url(file.name)}" if pack.container is None else ""
            where = f": {redacted_url(pack.prefix)}{SUFFIX} does not name it" if unnamed else where
            raise FieldError(f"it has no field {name}{where}; its fields: {names}", path=pack.path)
    plain = [file for pack, file in zip(packs, files, strict=True) if pack.container is None]
    opened = iter(with_mirrors(plain, packs[0]._settings if packs else None))
    return [_field(pack, name, opened) for pack in packs]


def _field(pack: OpenPack, name: str, opened: Iterator[StoredFile]) -> FieldPack:
    ways: dict[str, Any] = {
        "skip_errors": pack.skip_errors,
        "verify": pack._verify,
        "trusted": pack._trusted,
        "settings": pack._settings,
    }
    if pack.container is not None:
        return FieldPack(pack, name, pack.path, shards=pack.shards, **ways)
    file = next(opened)
    index = file.beside(".idx")
    return FieldPack(pack, name, file, index if index.exists() else None, **ways)


def open_pack(path: PackPaths, **keywords: Any) -> OpenPack:
    """Open the record file that a name or URL stands for, with its index if there is one.

    Or a container, of whose files braces, patterns and lists name several; `choice` says which part
    of its samples is used.
    """
    shards = container_files(path)
    if shards:
        return OpenPack(single_path(path), shards=with_mirrors(shards, None), **keywords)
    return OpenPack(*pack_files(single_path(path)), **keywords)


def open_listed(
    paths: str | Sequence[str],
    indexes: str | Sequence[str] = "",
    name: str = "path",
    settings: RemoteSettings | None = None,
    choice: Choice = USUAL,
    **keywords: Any,
) -> list[OpenPack]:
    """Open the files that `recordio.packs.manifest.listed_packs` finds, with their indexes.

    Or those of a container, whose records are numbered through; `choice` says which part of its
    samples is used.
    """
    contained = contained_files(paths, settings)
    if contained is not None:
        return _open_contained(contained, indexes, name, settings, choice, keywords)
    packs = listed_packs(paths, indexes, name, settings)
    for file in packs[0][:1]:
        chosen_kind(None, choice, redacted_url(StoredFile.at(file).name))
    return [
        OpenPack(file, index, settings=settings, manifest=manifest, **keywords)
        for file, index, manifest in zip(*packs, strict=True)
    ]


def _open_contained(
    files: list[StoredFile],
    indexes: str | Sequence[str],
    name: str,
    settings: RemoteSettings | None,
    choice: Choice,
    keywords: dict[str, Any],
) -> list[OpenPack]:
    if indexes:
        raise ValueError(f"{name}: {redacted_url(files[0].name)} needs no index: drop {indexes!r}")
    rows = [chosen_kind(container_of(file), choice, redacted_url(file.name)) for file in files]
    if keywords.get("verify") and not all(row is not None and row.has_checksums for row in rows):
        raise ValueError(
            f"verify: {redacted_url(files[0].name)} has no checksums of its own: `recordio pack` "
            "makes a record file that has"
        )
    files = with_mirrors(files, settings)
    packs = [OpenPack(file, settings=settings, choice=choice, **keywords) for file in files]
    # Not as they are asked for: `cached_property` of Python 3.11 makes one wait for another.
    ways = {way: keywords.get(way, False) for way in ("skip_errors", "verify")}
    readers = open_contained(files, rows[0], settings, **ways) if rows[0] is not None else []
    for pack, reader in zip(packs, readers, strict=True):
        pack.reader = reader
    return packs
