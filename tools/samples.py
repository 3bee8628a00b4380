"""The samples of a container as images to pack: a list of them, contents, fields, parts of all."""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from recordio import RecordReader
from recordio.bytes.files import StoredFile, named_files, with_mirrors
from recordio.containers.braces import expand_braces
from recordio.containers.container import USUAL, Choice, Container
from recordio.containers.joined import JoinedRecords
from recordio.containers.labels import IMAGES, LABELS, first_named
from recordio.containers.table import container_of
from recordio.containers.tf_example import BOX_KEYS, decode_example
from recordio.containers.tfrecord import TFRECORD, masked_crc32c
from recordio.errors import (
    CorruptRecordError,
    EmptyRecordFileError,
    RecordIOError,
    RecordTooLargeError,
)
from recordio.formats.table import IMAGE_KINDS, kind_of
from recordio.list_files import ListEntry, safe_name
from recordio.packs.fields_meta import FieldMeta
from recordio.packs.names import PackPaths, container_files, pack_files, single_path
from recordio.packs.open_pack import FieldPack, OpenPack

from .encode import EncodeOptions
from .field_kinds import FoundKinds
from .field_sources import Value, fitted
from .im2rec_options import MOST_CONTENT
from .image_list import ImageList, format_line, shuffle_entries
from .outputs import url_refused

#: All fields that samples have.
EVERY = "all"
#: Bytes of a length in a TFRecord, of that with its checksum, and of the checksum of the data.
LENGTH, HEAD, TAIL = 8, 12, 4


@dataclass(frozen=True)
class Selection:
    """Samples to pack, and the parts of each; it can be sent to another process."""

    source: str | tuple[str, ...]
    #: The kind that the files are taken for; None: what their names say.
    kind: Container | None = None
    choice: Choice = USUAL
    fields: tuple[str, ...] = ()
    most: int = MOST_CONTENT
    #: The seed of their order; None: that of the source.
    seed: int | None = None

    @classmethod
    def of(cls, source: PackPaths, options: Any, kind: Container | None = None) -> Selection:
        """Return what the options of packing say."""
        several = [source] if isinstance(source, (str, os.PathLike)) else source
        names = tuple(map(_everywhere, several))
        choice = Choice(
            image_field=options.image_field or "",
            label_field=options.label_field or "",
            has_labels=not options.no_labels,
            suffixes=options.exts,
        )
        return cls(
            names[0] if len(names) == 1 else names,
            kind,
            choice,
            options.fields,
            options.max_content_bytes,
            options.seed if options.shuffle else None,
        )

    def files(self) -> tuple[Container, list[StoredFile]]:
        """List the files of the container, and say of what kind they are."""
        if self.kind is not None:
            return self.kind, files_of(self.source, self.kind)
        files = container_files(self.source)
        kind = container_of(files[0]) if files else None
        if kind is None:
            path, _ = pack_files(single_path(self.source))
            RecordReader(path).close()  # a file of another kind says so
            raise RecordIOError(
                "it is a record file already; `recordio filter`, `shuffle`, `shard` and `optimize` "
                "make others of it",
                path=path,
            )
        return kind, files


def _everywhere(name: str | os.PathLike[str]) -> str:
    """Return a name that means the same in other processes."""
    text = os.fsdecode(name)
    return text if "://" in text else os.path.abspath(text)


def files_of(source: str | Sequence[str], kind: Container) -> list[StoredFile]:
    """List the files that names, braces and patterns stand for, whatever they are called."""
    all_files: list[StoredFile] = []
    for name in [source] if isinstance(source, str) else source:
        if kind.is_folder and (reason := url_refused(name)):
            raise RecordIOError(reason, path=name)
        there = "://" not in name and os.path.exists(name)
        for path in [name] if there else expand_braces(name):
            try:
                files = [StoredFile(path)] if there else named_files([path])
            except FileNotFoundError:
                raise RecordIOError(
                    f"no file has such a name{_of(name, path)}", path=path
                ) from None
            for file in files:
                if file.is_local and not os.path.exists(file.name):
                    raise RecordIOError(f"there is no such file{_of(name, path)}", path=file.name)
                all_files += kind.shards(file, None)
    if not all_files:
        raise EmptyRecordFileError(f"there is no file in it that is {kind.name}", path=name)
    return all_files


def _of(name: str, path: str) -> str:
    return "" if name == path else f" (of {name})"


class SampleImages:
    """The samples of a container, all its files together; the id of one is its number.

    `names` are those by which messages call files that lie somewhere else, unpacked.
    """

    doubt = ""

    def __init__(
        self,
        selection: Selection,
        kind: Container,
        files: list[StoredFile],
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.selection = selection
        #: How many examples have each feature, as far as they were read.
        self._features: Counter[str] = Counter()
        self._lock = threading.Lock()
        files = with_mirrors(files, None)
        self.pack: OpenPack = OpenPack(
            single_path(selection.source), shards=files, choice=selection.choice
        )
        self.pack.container = kind.chosen(selection.choice)
        try:
            reader = self.pack.reader
        except RecordIOError as error:
            raise error.at(path=names.get(str(error.path), error.path)) from None
        for part in [reader, *getattr(reader, "parts", ())]:
            part.path = names.get(part.path, part.path)
        #: The names of the fields that are packed.
        self.fields: tuple[str, ...] = selection.fields
        if EVERY in self.fields:
            self.fields = tuple(self.pack.field_names)

    @cached_property
    def entries(self) -> list[ListEntry]:
        """List all samples in their order; their paths are names that a list can hold."""
        samples = self.pack.reader.samples
        labels, starts = samples.labels.tolist(), samples.label_starts().tolist()
        return [
            ListEntry(row, tuple(labels[starts[row] : starts[row + 1]]), safe_name(name))
            for row, name in enumerate(samples.all_names())
        ]

    def listed(self) -> list[ListEntry]:
        """List the samples in the order in which they are packed."""
        if not self.entries:
            raise EmptyRecordFileError("there is no sample in it", path=self.pack.path)
        if self.selection.seed is None:
            return self.entries
        return shuffle_entries(self.entries, self.selection.seed)

    def left_out(self) -> dict[str, int]:
        """Count what is not stored, by kind; known when all samples were read."""
        counts = {**self.pack.reader.samples.left_out, **dict(sorted(self._features.items()))}
        return {
            kind: count
            for kind, count in counts.items()
            if kind.replace("/", "_").removeprefix(".").partition(".")[0] not in self.fields
        }

    def notes(self) -> list[str]:
        """Say what of the source was read in another way than somebody may expect."""
        lines = self.pack.notes.lines()
        for name in self.fields:
            without = self._field_packs[name].missing.tolist()
            if without:
                reason = self._field_packs[name].absence(without[0])
                lines.append(f"{len(without)} images have no {name}; the first, {reason}")
        return lines

    def read(self, entry: ListEntry) -> bytes:
        """Copy the content of a sample."""
        reader, most = self.pack.reader, self.selection.most
        size = int(reader.samples.sizes[entry.id])  # 0 where only reading tells
        self._examine(entry.id)
        content = reader.copied_content(entry.id) if size <= most else b""
        if max(size, len(content)) > most:
            raise RecordTooLargeError(
                f"it has {max(size, len(content))} bytes; raise --max-content-bytes to allow it"
            )
        return content

    def _examine(self, row: int) -> None:
        """Compare the checksum of the data of a TFRecord, and count features that are not stored.

        The checksum of its length was compared when it was found.
        """
        reader = self.pack.reader
        if reader.container.name != TFRECORD.name or row in reader.samples.faults:
            return
        part, number = reader.part_of(row) if isinstance(reader, JoinedRecords) else (reader, row)
        begin, end = self._frames[part.path][number : number + 2]
        with nullcontext() if part.remote is None else part.remote.mirror.pin_bytes(begin, end):
            data, checksum = part.view[begin + HEAD : end - TAIL], part.view[end - TAIL : end]
            if masked_crc32c(data) != int.from_bytes(checksum, "little"):
                raise CorruptRecordError("the checksum of its data is wrong: it is damaged")
            features = decode_example(data, ())
        choice = self.selection.choice
        stored = {choice.image_field or first_named(features, IMAGES)}
        if choice.has_labels:
            label = choice.label_field or first_named(features, LABELS)
            stored |= set(BOX_KEYS) if choice.boxes or label is None else {label}
        with self._lock:
            self._features.update(features.keys() - stored)

    @cached_property
    def _frames(self) -> dict[str, list[int]]:
        """Find where each record of TFRecord files begins, and their ends."""
        edges_by_path: dict[str, list[int]] = {}
        for part in self.pack.parts:
            view, edges = part.file.map(), [0]
            for _ in range(len(part)):
                length = int.from_bytes(view[edges[-1] : edges[-1] + LENGTH], "little")
                edges.append(edges[-1] + HEAD + length + TAIL)
            edges_by_path[part.path] = edges
        return edges_by_path

    def of_fields(self, options: EncodeOptions) -> SampleFields:
        """Return what reads the fields of the samples."""
        return SampleFields(self._field_packs, options)

    @cached_property
    def _field_packs(self) -> dict[str, FieldPack]:
        """Open the fields; one that no sample has is a FieldError."""
        packs = {name: self.pack.field(name) for name in self.fields}
        for field in packs.values():
            if len(field.missing) == len(field):
                field.check_complete()
        return packs

    def name_of(self, entry: ListEntry) -> str:
        """Name the sample and its file."""
        where = self.pack.reader.location(entry.id)
        if self.pack.is_folder:
            return entry.path or where["path"]
        place = entry.path or "record {}, offset {}".format(where["record"], where["offset"])
        return f"{where['path']}, {place}"

    def path_of(self, name: str) -> str:
        """Return the same name: it has the file in it."""
        return name


class SampleFields:
    """The fields of samples; a mask or another image is cropped and resized as its image is."""

    def __init__(self, packs: Mapping[str, FieldPack], options: EncodeOptions) -> None:
        self.names: Sequence[str] = list(packs)
        self._packs, self._options = packs, options
        self._kinds = FoundKinds(packs)
        self._without = {name: set(field.missing.tolist()) for name, field in packs.items()}

    def of(self, entry: ListEntry, image: bytes) -> dict[str, Value]:
        """Find the fields of a sample; those that it does not have are missing."""
        values: dict[str, Value] = {}
        for name, field in self._packs.items():
            if entry.id in self._without[name]:
                continue
            try:
                content = field.reader.copied_content(entry.id)
                if self._is_changed and kind_of(content) in IMAGE_KINDS:
                    content = fitted(None, content, image, self._options)
            except RecordIOError as error:
                raise type(error)(f"its {name}: {error.reason}") from None
            values[name] = field.reader.samples.labels_of(entry.id).tolist(), content
            self._kinds.look(name, *values[name])
        return values

    @property
    def _is_changed(self) -> bool:
        return bool(self._options.center_crop or self._options.resize)

    def described(self) -> dict[str, FieldMeta]:
        """Describe the fields by the values that were found."""
        return self._kinds.described()


@functools.lru_cache(maxsize=1)  # shards are made one after the other
def _opened(selection: Selection, stamp: str) -> SampleImages:
    return SampleImages(selection, *selection.files())


@dataclass(frozen=True)
class SampleSpan:
    """Samples of a list; see `recordio.tools.pack_shards.Span`."""

    selection: Selection
    stamp: str
    begin: int
    end: int

    @property
    def images(self) -> int:
        """Number of samples."""
        return self.end - self.begin

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of their fields."""
        return self.selection.fields

    def read(self) -> bytes:
        """Return bytes that change with the files of the container and with the samples."""
        lines = "".join(map(format_line, self.listed().entries))
        parts = (self.stamp, self.selection.choice, self.fields, self.selection.most)
        return f"{parts}\n{lines}".encode("utf-8", "surrogateescape")

    def listed(self) -> ImageList:
        """List the samples."""
        return ImageList(_opened(self.selection, self.stamp).listed()[self.begin : self.end])

    def contents(self, root: str) -> SampleImages:
        """Return what reads the samples."""
        return _opened(self.selection, self.stamp)


def cut_samples(selection: Selection, count: int | None, most: int) -> Sequence[SampleSpan]:
    """Cut the samples of a container into `count` spans, or into spans of at most `most`."""
    images = SampleImages(selection, *selection.files())
    selection = replace(selection, fields=images.fields)
    stamp = repr(images.pack.version())  # one word for this version of the files
    total = len(images.listed())
    spans = -(-total // most) if count is None else count
    if spans > total:
        raise EmptyRecordFileError(
            f"{spans} shards cannot be made of {total} samples", path=single_path(selection.source)
        )
    cuts = [total * number // spans for number in range(spans + 1)]
    return [SampleSpan(selection, stamp, begin, end) for begin, end in itertools.pairwise(cuts)]
