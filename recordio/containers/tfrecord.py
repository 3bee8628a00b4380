"""TFRecord files of ``tf.train.Example``: images are spans of the file, which is mapped.

The checksum of every length is compared when the samples are found; those of the data are not, for
that would read every byte of every image.  `recordio from-tfrecord` compares them all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..bytes.crc32c import crc32c
from ..bytes.files import StoredFile
from ..bytes.mapping import LOST, is_lost
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import CorruptRecordError, FieldError, LabelError, RecordIOError, TruncatedRecordError
from ..formats.table import kind_of
from ..frames.encoder import MAX_RECORD_LENGTH
from ..list_files import check_labels
from ..notes import Notes
from .container import USUAL, Choice, Container, files_of_folder, is_folder_of
from .labels import (
    CHANNELS,
    HEIGHTS,
    IMAGES,
    LABELS,
    WIDTHS,
    check_finite,
    check_not_pixels,
    first_named,
    note_numbers,
)
from .objects import MOST_ROWS, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples
from .tf_example import (
    BOX_KEYS,
    CUT,
    NO_LABEL,
    ODD,
    PLAIN,
    decode_example,
    find_examples,
)

#: ``a.tfrecord``, ``a.tfrec``, ``a.tfrecord-00000-of-00008`` and ``train-00000-of-01024``, and
#: patterns of them.
PATTERN = re.compile(
    r"(\.tfrec(ords?)?(-[\d?*\[\]-]+-of-[\d?*\[\]-]+)?"
    r"|(^|[\\/])[^.\\/]*-[\d?*\[\]-]+-of-[\d?*\[\]-]+)(\.gz)?$",
    re.IGNORECASE,
)
MASK_DELTA = 0xA282EAD8
HEAD = 12
#: Records that are looked at together, and bytes of a file on a server that are there meanwhile.
AT_ONCE, WINDOW = 1 << 14, 1 << 25
#: Label of an image without objects: one without area, which readers drop.
NO_OBJECTS = (2.0, 5.0, -1.0, 0.0, 0.0, 0.0, 0.0)
#: How far a box may leave its image, as a fraction of it; it is cut at the edge.
MARGIN = 0.01
WANTED = (*IMAGES, *LABELS, *BOX_KEYS)

Features = Mapping[str, Sequence[Any]]


def masked_crc32c(data: bytes | memoryview) -> int:
    """Compute the masked CRC-32C of some bytes."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFF_FFFF


def chosen(features: Features, names: Sequence[str], option: str, keyword: str) -> str:
    """Return the first of some features that an example has."""
    for name in names:
        if name in features:
            return name
    raise RecordIOError(
        f"it has no feature {' or '.join(names[:2])}; {keyword}, or {option} of "
        f"`recordio from-tfrecord`, chooses one of {', '.join(features) or 'none'}"
    )


def content_of(features: Features, names: Sequence[str]) -> str:
    """Return the feature that holds the image, as one string of bytes."""
    name = chosen(features, names, "--content", "image_field=")
    if len(features[name]) != 1 or not isinstance(features[name][0], bytes):
        raise RecordIOError(
            f"the content {name} must be one string of bytes; `recordio from-tfrecord` with --raw "
            "stores examples as they are"
        )
    return name


def labels_of(
    features: Features, names: Sequence[str] = LABELS, boxes_first: bool = False
) -> tuple[Any, Sequence[str]]:
    """Return the labels of an example, and the features that they come from.

    Without a label for all of the image, boxes make that of a detection record, and with
    `boxes_first` also beside one.
    """
    if BOX_KEYS[0] in features and (boxes_first or not any(name in features for name in names)):
        return _box_labels(features), BOX_KEYS
    name = chosen(features, names, "--label", "label_field=")
    if not features[name] or isinstance(features[name][0], bytes):
        raise LabelError(f"the label {name} holds no number")
    for value in features[name]:
        check_finite(value, name)
    return features[name], (name,)


def _box_labels(features: Features) -> list[float]:
    columns = [features.get(name, ()) for name in BOX_KEYS]
    if len({len(column) for column in columns}) != 1:
        counts = ", ".join(f"{len(c)} in {n}" for n, c in zip(BOX_KEYS, columns, strict=True))
        raise LabelError(f"its objects have different numbers of values: {counts}")
    label = list(NO_OBJECTS[:2])
    for number, (kind, *edges) in enumerate(zip(*columns, strict=True)):
        if isinstance(kind, bytes) or any(isinstance(edge, bytes) for edge in edges):
            raise LabelError(f"object {number} has a text for a number")
        left, top, right, bottom = edges
        inside = all(-MARGIN <= edge <= 1 + MARGIN for edge in edges)
        if not (inside and left <= right and top <= bottom):  # nor NaN
            raise LabelError(
                f"the box of object {number}, xmin, ymin, xmax, ymax {edges}, is none in fractions "
                "of the image"
            )
        label += [kind, *(min(max(edge, 0.0), 1.0) for edge in edges)]
    return label if len(columns[0]) else list(NO_OBJECTS)


def scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Find the image and the label of every example, or the feature that a field is.

    All of a file on a server is fetched.
    """
    mirror = None if file.is_local else file.mirrored(settings)
    view = file.map() if mirror is None else mirror.view
    field = choice.field
    feature = _features_of(file, settings, choice).get(field, field) if field else ""
    tables = _Tables(feature, choice)
    contents, names = (
        tuple(one.encode() for one in some) for some in (tables.images, tables.labels_in)
    )
    at, status, size = 0, 0, len(view)
    window = size if mirror is None else WINDOW
    spans, kinds = np.empty((AT_ONCE, 4), np.int64), np.empty(AT_ONCE, np.int64)
    labels = np.empty(AT_ONCE, np.float32)
    while at < size and not status:
        stop = min(at + window, size)
        if mirror is not None:
            mirror.prefetch(stop, stop + WINDOW)
        with nullcontext() if mirror is None else mirror.pin_bytes(at, stop):
            count, following, status = find_examples(
                view, at, stop, spans, labels, kinds, contents, names, choice.boxes
            )
            tables.add(view, spans[:count], labels[:count], kinds[:count])
        if status == CUT and stop < size:  # not of the file, but of the window
            status = 0
            window = WINDOW if following > at else 2 * window
        at = following
    if is_lost(view):
        raise TruncatedRecordError(LOST, path=redacted_url(file.name))
    if status:
        tables.add_damage(_damage(view, at, status, redacted_url(file.name)), at)
    return tables.samples()


def _fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the features of the first example that are one string of bytes, and no image."""
    return sorted(_features_of(file, settings, choice))


def _features_of(
    file: StoredFile, settings: RemoteSettings | None, choice: Choice
) -> dict[str, str]:
    """Find such features by the names of fields: those in which _ stands for each /."""
    head = file.first_bytes(HEAD, settings)
    length = int.from_bytes(head[:8], "little")
    if masked_crc32c(head[:8]) != int.from_bytes(head[8:], "little") or length > MAX_RECORD_LENGTH:
        return {}  # whoever opens it says what is wrong
    try:
        features = decode_example(file.first_bytes(HEAD + length, settings)[HEAD:])
    except RecordIOError:
        return {}
    fields: dict[str, str] = {}
    taken = {*WANTED, choice.label_field}
    if choice.image_field:
        taken = taken - {*IMAGES} | {choice.image_field}
    for name, values in features.items():
        short = name.replace("/", "_")
        is_field = name not in taken and short.isascii() and short.isidentifier()
        if is_field and len(values) == 1 and isinstance(values[0], bytes):
            fields.setdefault(short, name)
    return fields


def _damage(view: memoryview, at: int, status: int, path: str) -> str:
    """Describe what is wrong where the walk ended; an error if that is at the beginning."""
    left = len(view) - at
    if status == CUT:
        reason = f"the file ends within this record, {left} bytes behind its beginning"
    else:
        reason = f"the checksum of its length is wrong: {left} bytes cannot be read from here on"
    if at or status == CUT:
        return reason
    start = bytes(view[:2])
    if start == b"\x1f\x8b":
        raise RecordIOError(
            "it is compressed with gzip, and cannot be read in place: `recordio from-tfrecord` "
            "makes a record file of it",
            path=path,
        )
    if start[0] == 0x78 and int.from_bytes(start, "big") % 31 == 0:
        raise RecordIOError(
            "it is compressed with zlib, and cannot be read in place: unpack it before, for "
            "example with `pigz -dz`, or write it without a compression type",
            path=path,
        )
    raise CorruptRecordError(
        "the checksum of the first length is wrong: it is no TFRecord file", path=path, offset=0
    )


class _Tables:
    """The tables of a file as they grow; with a `feature` those of a field."""

    def __init__(self, feature: str = "", choice: Choice = USUAL) -> None:
        self.feature = feature
        self.boxes_first = choice.boxes
        #: Features that may be the content and the label, the first one that there is.
        self.images: Sequence[str] = (feature or choice.image_field,)
        self.labels_in: Sequence[str] = (choice.label_field,) if choice.label_field else LABELS
        if not self.images[0]:
            self.images = IMAGES
        if feature or not choice.has_labels:
            self.labels_in = ()
        self.has_labels = False
        self.notes = Notes()
        self.numbers: list[str] = []
        self.offsets: list[np.ndarray] = []
        self.sizes: list[np.ndarray] = []
        self.labels: list[np.ndarray] = []
        self.lists: dict[int, list[float]] = {}
        self.faults: dict[int, str] = {}
        self.unlabelled: list[int] = []
        self.count = 0

    def add(
        self, view: memoryview, spans: np.ndarray, labels: np.ndarray, kinds: np.ndarray
    ) -> None:
        begins, sizes, labels = spans[:, 2].copy(), spans[:, 3] - spans[:, 2], labels.copy()
        if self.feature:
            self._add_rows(view, begins, sizes)
        elif len(spans) and not self.count:
            self._look_at_first(view, spans, kinds)
        if self.labels_in:
            self.unlabelled += (self.count + np.flatnonzero(kinds == NO_LABEL)).tolist()
            self.has_labels |= bool((kinds == PLAIN).any())
        for row in np.flatnonzero((kinds == PLAIN) & ~np.isfinite(labels)).tolist():
            self.faults[self.count + row] = f"its label is {labels[row]}, which is no finite number"
            begins[row], sizes[row] = spans[row, 0], NO_CONTENT
        for row in np.flatnonzero(kinds == ODD).tolist():
            number = self.count + row
            try:
                row_labels = self._looked_at(view[int(spans[row, 0]) + HEAD : int(spans[row, 1])])
            except RecordIOError as error:
                self.has_labels |= isinstance(error, LabelError)
                self.faults[number] = error.reason
                begins[row], sizes[row] = spans[row, 0], NO_CONTENT
                continue
            self.has_labels |= row_labels is not None
            if row_labels is None:
                self.unlabelled.append(number)
            elif len(row_labels) == 1:
                labels[row] = row_labels[0]
            else:
                self.lists[number] = row_labels
        self.offsets.append(begins)
        self.sizes.append(sizes)
        self.labels.append(labels)
        self.count += len(kinds)

    def _add_rows(self, view: memoryview, begins: np.ndarray, sizes: np.ndarray) -> None:
        """Take the boxes or points that contents have as rows of numbers, in JSON."""
        for row in np.flatnonzero(sizes > 0).tolist():
            begin = int(begins[row])
            if view[begin] == ord("[") and sizes[row] <= MOST_ROWS:
                try:
                    labels = labels_of_rows(view[begin : begin + int(sizes[row])])
                except LabelError as error:
                    self.faults[self.count + row] = error.reason
                    sizes[row] = NO_CONTENT
                    continue
                if labels is not None:
                    self.lists[self.count + row] = labels

    def _looked_at(self, data: memoryview) -> Any:
        """Read the labels of an example; None if it has none of any kind."""
        if self.feature:
            raise FieldError(
                f"the feature {self.feature} is not there, or no single string of bytes"
            )
        features = decode_example(data, (*self.images, *self.labels_in, *BOX_KEYS))
        content_of(features, self.images)
        if not self.labels_in or not any(
            name in features for name in (*self.labels_in, BOX_KEYS[0])
        ):
            return None
        labels, _ = labels_of(features, self.labels_in, self.boxes_first)
        check_labels(labels)
        return labels

    def _look_at_first(self, view: memoryview, spans: np.ndarray, kinds: np.ndarray) -> None:
        """Refuse raw pixels, and name what of a sample without a label holds one number."""
        contents = [view[int(row[2]) : int(row[3])] for row in spans[[0, -1]] if row[3] >= 0]
        try:
            features = decode_example(view[int(spans[0, 0]) + HEAD : int(spans[0, 1])])
        except RecordIOError:
            return  # which is a fault of it
        if contents and all(kind_of(content) == "other" for content in contents):
            sides = [features.get(first_named(features, some) or "") for some in (HEIGHTS, WIDTHS)]
            sides.append(features.get(first_named(features, CHANNELS) or "") or [1])
            shape = [side[0] for side in sides if side and isinstance(side[0], int)]
            name = next((name for name in self.images if name in features), "image")
            check_not_pixels(contents[0], name, shape if len(shape) == len(sides) else ())
        self.numbers = [
            name
            for name, values in features.items()
            if len(values) == 1 and not isinstance(values[0], bytes)
        ]

    def add_damage(self, reason: str, offset: int) -> None:
        self.faults[self.count] = reason
        self.offsets.append(np.array([offset]))
        self.sizes.append(np.array([NO_CONTENT]))
        self.labels.append(np.zeros(1, np.float32))
        self.count += 1

    def samples(self) -> ContainedSamples:
        """Join the tables; where no example has a label, each has the label 0."""
        more: dict[str, Any] = {"faults": self.faults, "notes": self.notes}
        if self.labels_in and (self.has_labels or self.unlabelled):
            more["labelled"] = self.has_labels
            if self.unlabelled and not self.has_labels:
                note_numbers(self.notes, self.numbers, len(self.unlabelled), "feature")
        if not self.count:
            empty = np.zeros(0, np.int64)
            return ContainedSamples(empty, empty, np.zeros(0, np.float32))
        offsets, sizes, labels = map(np.concatenate, (self.offsets, self.sizes, self.labels))
        if self.has_labels:
            for number in self.unlabelled:
                sizes[number] = NO_CONTENT
                self.faults[number] = (
                    f"it has no feature {' or '.join(self.labels_in[:2])}, as others have"
                )
        if not self.lists:
            return ContainedSamples(offsets, sizes, labels, **more)
        counts = np.ones(self.count, np.int64)
        counts[list(self.lists)] = [len(row) for row in self.lists.values()]
        starts = np.concatenate([[0], np.cumsum(counts)])
        labels = np.repeat(labels, counts)
        for number, row in self.lists.items():
            labels[starts[number] : starts[number + 1]] = row
        return ContainedSamples(offsets, sizes, labels, starts, **more)


TFRECORD = Container(
    "a TFRecord file",
    scan,
    PATTERN,
    is_it=is_folder_of(PATTERN),
    shards=files_of_folder(PATTERN),
    fields=_fields,
    chooses=frozenset(["field", "image_field", "label_field", "has_labels", "boxes"]),
    rules=2,
)
