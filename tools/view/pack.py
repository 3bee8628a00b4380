"""A pack as pages show it: its records, their faults, and the files beside it.

Opening takes no time: the index is mapped a block at a time, and nothing is scanned before somebody
asks for it.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from recordio.boxes import LEAST_HEADER, LEAST_OBJECT, boxes_of
from recordio.bytes.files import StoredFile
from recordio.errors import IndexFileError, KeyNotFoundError, LabelError, RecordIOError
from recordio.formats.table import IMAGE_KINDS
from recordio.frames.head import part_at
from recordio.header import IRHeader
from recordio.list_files import entries_among
from recordio.packs.identities import Identities, find_identities, records_by_key
from recordio.packs.names import pack_prefix, source_prefix
from recordio.packs.open_pack import open_pack
from recordio.payload import read_payload

from ..payloads import labels_of, number_text
from .fields import ShownFields
from .kept_sizes import KeptSizes
from .lines import Lines, NotCounted
from .locations import FrameLocations, IndexLocations, Location, SampleLocations

#: How far a line of a list may be from the position of its record, where pages show file names.
NEAR = 64
MOST_OBJECTS = 10_000


@dataclass(frozen=True)
class ShownRecord:
    """One record, perhaps damaged."""

    position: int
    key: int
    offset: int
    #: The offset behind it; that of the record itself if it is damaged.
    end: int
    #: All of it, with its image header; empty if it is damaged.
    data: memoryview
    header: IRHeader | None
    content: memoryview
    #: That of the content; ``"damaged"`` if there is none.
    kind: str
    #: Why it cannot be read; empty if it can.
    damage: str = ""

    @property
    def is_image(self) -> bool:
        """True if the content is an image, by its first bytes."""
        return self.kind in IMAGE_KINDS

    @property
    def labels(self) -> list[float]:
        """The labels in the header; none without one."""
        return [] if self.header is None else labels_of(self.header)

    @functools.cached_property
    def objects(self) -> np.ndarray | None:
        """Class and corners of each object, (objects, 5), of a record with boxes; None of others.

        A header alone, other than ``[2, 5]``, is taken for other labels.
        """
        labels = self.labels
        if labels[:1] == [len(labels)] and labels != [LEAST_HEADER, LEAST_OBJECT]:
            return None
        try:
            return boxes_of(labels)[:MOST_OBJECTS, :5]
        except LabelError:
            return None


class ShownPack:
    """One pack, read a page at a time."""

    def __init__(self, path: str, name: str = "") -> None:
        self.opened = open_pack(path, trusted=False, skip_errors=True)
        self.path, self.index_path = self.opened.path, self.opened.index_path
        self.reader = self.opened.reader
        #: What addresses of pages call it.
        self.name = name or pack_name(self.path)
        self.samples = self.opened.samples
        self.size = self.opened.bytes
        versions = [file.version() for file in self.opened.shards]
        if self.opened.is_folder:
            versions = [self.opened.version()]
        self.version = f"{zlib.crc32(repr(versions).encode()):08x}"
        self.locations: IndexLocations | FrameLocations | SampleLocations
        if self.samples is not None:
            self.locations = SampleLocations(self.reader)
        elif self.index_path:
            self.locations = IndexLocations(self.index_path)
        else:
            self.locations = FrameLocations(self.reader)
        #: What is wrong with files beside it.
        self.notes: list[str] = []
        self.classes: dict[int, str] = {}
        try:
            self.classes = self.opened.shown_classes
        except (RecordIOError, OSError) as error:
            self.notes.append(f"names of classes are not shown: {error}")
        listed = self.opened.list_path
        self.list = None if listed is None else Lines(listed)
        self._closing = threading.Event()
        self.sizes = KeptSizes(self.opened, self.locations, self._closing.is_set)

    def start(self) -> None:
        """Count records and lines of the list in the background."""
        for survey in [self.locations.survey, *([self.list.survey] if self.list else [])]:
            threading.Thread(target=survey, args=(self._closing.is_set,), daemon=True).start()

    def close(self) -> None:
        """End the work in the background, and let the files go."""
        self._closing.set()
        self.locations.close()
        if self.list is not None:
            self.list.close()

    @property
    def closing(self) -> bool:
        """True if work in the background is to end."""
        return self._closing.is_set()

    # -- records --------------------------------------------------------------------------------

    def record(self, position: int) -> ShownRecord:
        """Read the record at a position; `NotCounted` if it was not reached yet."""
        self.locations.wait_for(position, 2)
        locations = self.locations.read(position, position + 1) if position >= 0 else []
        if not locations:
            raise KeyNotFoundError(f"there is no position {position}", path=self.path)
        return self.at(locations[0])

    def at(self, location: Location) -> ShownRecord:
        """Read the record at a location; its `damage` says what is wrong with it."""
        try:
            if self.samples is not None:
                data = self.reader[location.position]
                header, content, kind = read_payload(data)
                return ShownRecord(
                    *location, location.offset + len(content), data, header, content, kind
                )
            if not 0 <= location.offset < self.size or location.offset % 4:
                raise IndexFileError(
                    f"offset {location.offset} lies outside of the record file",
                    path=self.index_path,
                )
            data, end = self.reader.read_at(location.offset, location.position)
            assert data is not None
        except (RecordIOError, OSError) as error:
            nothing = memoryview(b"")
            reason = getattr(error, "reason", None) or str(error)
            return ShownRecord(
                *location, location.offset, nothing, None, nothing, "damaged", reason
            )
        header, content, kind = read_payload(data)
        return ShownRecord(*location, end, data, header, content, kind)

    def records(self, locations: Iterable[Location]) -> list[ShownRecord]:
        """Read the records at several locations."""
        return [self.at(location) for location in locations]

    @functools.cached_property
    def fields(self) -> ShownFields:
        """The fields of the pack."""
        return ShownFields(self.opened)

    def parts(self, record: ShownRecord) -> int:
        """Count the parts in which a whole record is stored."""
        if self.samples is not None:
            return 1
        data = StoredFile(self.path).map()
        count, end = 0, record.offset
        while end < record.end and (part := part_at(data, end)):
            count, end = count + 1, part[0]
        return count

    # -- what stands beside them ----------------------------------------------------------------

    def class_name(self, label: float) -> str:
        """Return the name of a class; empty where there is none."""
        return self.classes.get(int(label), "") if float(label).is_integer() else ""

    def label_text(self, record: ShownRecord) -> str:
        """Return the labels of a record in a few words."""
        if record.header is None:
            return ""
        if record.objects is not None:
            return f"{len(record.objects)} objects" if len(record.objects) != 1 else "1 object"
        labels = record.labels
        if len(labels) == 1:
            return self.class_name(labels[0]) or f"label {number_text(labels[0])}"
        shown = [self.class_name(value) or number_text(value) for value in labels[:3]]
        return ", ".join(shown) + (" …" if len(labels) > 3 else "")

    def file_name(self, record: ShownRecord) -> str:
        """Find the file that a record was made of in the list; empty if it is not near there."""
        if self.samples is not None:
            name = self.samples.name_of(record.position)
            return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if self.list is None or record.header is None:
            return ""
        first = max(record.position - NEAR, 0)
        try:
            lines = self.list.read(first, record.position + NEAR)
        except (NotCounted, RecordIOError):
            return ""
        number = b"%d" % record.header.id
        entries = entries_among(line for line in lines if line.lstrip().startswith(number))
        name = next((entry.path for entry in entries if entry.id == record.header.id), "")
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    @functools.cached_property
    def identities(self) -> Identities | None:
        """The identities of a face-recognition pack; None for an ordinary one.

        `NotCounted` if that cannot be told yet, and a RecordHeaderError if keys were rounded so
        that it cannot be told at all.
        """
        if self.samples is not None:
            return None
        return find_identities(records_by_key(self._by_key), None, self.path)

    @property
    def lists_identities(self) -> bool:
        """True if it is known to be a face-recognition pack."""
        try:
            return self.identities is not None
        except (NotCounted, RecordIOError):
            return False

    def identity(self, number: int) -> range:
        """Return the keys of the images of one identity; none if its record is damaged."""
        identities = self.identities
        if identities is None or not 0 <= number < len(identities):
            raise KeyNotFoundError(f"there is no identity {number}", path=self.path)
        if identities.rows(number, number + 1) is None:
            return range(0)
        return range(*identities.ranges(number, number + 1)[0].tolist())

    def _by_key(self, key: int) -> memoryview:
        return self.record(self.locations.position_of(key)).data


def pack_name(path: str) -> str:
    """Return the name of a file as addresses call its pack, as far as they can hold it.

    >>> pack_name("data/my photos.rec")
    'my_photos'
    """
    return re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(pack_prefix(path))).strip(".") or "pack"


def open_packs(paths: Sequence[str]) -> dict[str, ShownPack]:
    """Open packs, by names of their own."""
    packs: dict[str, ShownPack] = {}
    for path in paths:
        name = first = pack_name(source_prefix(path))
        number = 2
        while name in packs:
            name, number = f"{first}-{number}", number + 1
        packs[name] = ShownPack(path, name)
    return packs
