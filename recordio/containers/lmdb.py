"""LMDB databases, read by the library lmdb: images by any key, Caffe's Datum, image-1 and label-1.

Pickles are refused, since they run code when they are read.  Nothing is written into the folder of
a database but its index, and no lock is taken: nobody may write it meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.remote.settings import RemoteSettings
from ..errors import (
    CorruptRecordError,
    EmptyRecordFileError,
    FieldError,
    LabelError,
    RecordIOError,
    TruncatedRecordError,
)
from ..extras import need
from ..formats.table import kind_of
from ..frames.encoder import MAX_RECORD_LENGTH
from ..list_files import check_labels
from ..values import number as number_of
from ..wire import fields
from .container import CHANGED, USUAL, Choice, Container
from .folder import labels_by_folder
from .labels import LABELS, note_numbers
from .objects import MOST_ROWS, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples

DATA = "data.mdb"
#: What stands behind the 16 bytes of a page's header in the first page.
MAGIC, MAGIC_AT = b"\xde\xc0\xef\xbe", 16
#: Keys that say something about the others.
ABOUT = (b"__keys__", b"__len__", b"length", b"num-samples")
IMAGE, LABEL = b"image-", b"label-"
#: The pattern of keys with numbers.
NUMBERED = re.compile(r"(.*[^%\d])%0?\d*d")
#: The beginnings of pickles of protocols 2 to 5; each ends with a dot.
PICKLE = re.compile(rb"\x80[\x02-\x05]")
#: Wire types of protobuf.
VARINT, BYTES = 0, 2
MOST_LABEL = 4096
#: Keys of fields of the images with such numbers: ``mask-000000001``.
OF_FIELD = re.compile(rb"([A-Za-z_][A-Za-z0-9_]*)-\d+")


class Datum(NamedTuple):
    """Caffe's message, as far as it is used here."""

    channels: int
    height: int
    width: int
    data: memoryview
    label: int
    encoded: bool


def _is_lmdb(file: StoredFile) -> bool:
    """Tell a folder with a database, and a file that is one."""
    if not file.is_local:
        return file.name.partition("?")[0].endswith((".lmdb", ".mdb"))
    if os.path.isdir(file.name):
        file = StoredFile(os.path.join(file.name, DATA))
    elif not file.name.endswith((".lmdb", ".mdb")):
        return False
    return file.first_bytes(MAGIC_AT + len(MAGIC))[MAGIC_AT:] == MAGIC


def _shards(file: StoredFile, settings: RemoteSettings | None = None) -> list[StoredFile]:
    """Name the file of a database; its version is that of the samples."""
    file.check_local()
    return [StoredFile(os.path.join(file.name, DATA)) if os.path.isdir(file.name) else file]


class _Environment:
    """A database, open once in a process, as the library demands; closed when nobody needs it."""

    def __init__(self, path: str) -> None:
        lmdb = need("lmdb", "reading LMDB")
        try:
            self.opened = lmdb.open(
                path, subdir=False, readonly=True, lock=False, readahead=False, max_spare_txns=16
            )
        except lmdb.Error as error:
            raise RecordIOError(f"the database cannot be opened: {error}", path=path) from None
        # The library would read beyond the end of a file that was cut, which ends the process.
        size = (self.opened.info()["last_pgno"] + 1) * self.opened.stat()["psize"]
        if size > os.path.getsize(path):
            there = os.path.getsize(path)
            self.opened.close()
            raise TruncatedRecordError(f"it has {there} bytes of {size}: copy it again", path=path)
        self.path, self.version = path, _version(path)

    def __del__(self) -> None:
        if hasattr(self, "opened"):
            self.opened.close()

    @contextlib.contextmanager
    def begin(self) -> Iterator[Any]:
        """Begin a transaction that only reads, with buffers instead of copies.

        Of a file that became shorter the library would read what is not there, which ends the
        process, so that the file is looked at before.
        """
        if _version(self.path) != self.version:
            raise RecordIOError(CHANGED, path=self.path)
        try:
            with self.opened.begin(buffers=True) as transaction:
                yield transaction
        except need("lmdb", "reading LMDB").Error as error:
            raise CorruptRecordError(f"lmdb cannot read it: {error}", path=self.path) from None


def _version(path: str) -> tuple[int, ...]:
    """Tell a file from one that took its place."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


_OPEN: WeakValueDictionary[tuple[int, str], _Environment] = WeakValueDictionary()
_OPENING = threading.Lock()


def _new_lock() -> None:
    global _OPENING  # another thread may have held it
    _OPENING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def _environment(path: str) -> _Environment:
    """Open a database, or find it open; one that was opened before a fork is opened again."""
    key = os.getpid(), os.path.realpath(path)
    with _OPENING:
        for (process, _), inherited in list(_OPEN.items()):
            if process != key[0]:  # the library would take it for one of this process
                inherited.opened.close()
        environment = _OPEN.get(key)
        if environment is None or environment.version != _version(path):
            environment = _OPEN[key] = _Environment(path)
        return environment


def _scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Read all keys, and of each value the beginning, or what of a Datum is no image.

    Or of each image the value of a field.
    """
    file.check_local()
    if os.path.isdir(file.name):
        file = StoredFile(os.path.join(file.name, DATA))
    if choice.field:
        return _scan_field(file, choice)
    keys: list[bytes] = []
    labels: list[float | None] = []
    sizes: list[int] = []
    faults: dict[int, str] = {}
    left_out = 0
    environment = _environment(file.name)  # open until the end
    with environment.begin() as transaction:
        if transaction.stat()["entries"] == 0:
            raise EmptyRecordFileError("the database is empty", path=file.name)
        image, label_key = _keys_of(transaction, choice, file.name)
        others = [] if image is None else list(_numbers(transaction))
        for key, value in _entries(transaction):
            if key in ABOUT or (image is not None and not _is_numbered(key, image)):
                left_out += key not in ABOUT
                continue
            row, label = len(keys), None
            try:
                size, label = _measured(value)
                if label_key is not None:
                    label = _number(transaction.get(label_key(key)), key)
                    left_out -= 1
            except _PickleError:
                raise RecordIOError(
                    f"the value of {key[:60]!r} is a pickle, which would run code when it is read: "
                    "write the encoded images instead",
                    path=file.name,
                ) from None
            except LabelError as error:
                raise error.at(path=file.name, record=row) from None
            except RecordIOError as error:
                size, faults[row] = NO_CONTENT, error.reason
            keys.append(key)
            sizes.append(size)
            labels.append(label)
    if not keys:
        raise EmptyRecordFileError("the database holds no images", path=file.name)
    names = [key.decode("utf-8", "surrogateescape") for key in keys]
    classes: dict[int, str] = {}
    has_labels = label_key is not None or any(label is not None for label in labels)
    by_folder = choice.has_labels and not has_labels and any("/" in name for name in names)
    numbers = [0.0 if label is None or not choice.has_labels else label for label in labels]
    if by_folder:
        numbers, classes = labels_by_folder(names)
    for row, label in enumerate(labels if has_labels and choice.has_labels else ()):
        if label is None and row not in faults:
            sizes[row], faults[row] = NO_CONTENT, "it has no label, as others have"
    rows = [(number,) for number in numbers]
    samples = ContainedSamples.of(range(len(keys)), sizes, rows, classes=classes, faults=faults)
    samples.set_names(keys)
    samples.left_out = {"other keys": left_out} if left_out > 0 else {}
    if choice.has_labels and not by_folder:
        samples.labelled = has_labels
        if not has_labels:
            note_numbers(samples.notes, others, len(keys), "pattern of keys")
    return samples


def _prefix(pattern: str, path: str) -> bytes:
    """Return what stands before the numbers of keys."""
    match = NUMBERED.fullmatch(pattern)
    if match is None:
        raise RecordIOError(f"{pattern!r} is no pattern of keys such as 'image-%09d'", path=path)
    return match[1].encode()


def _keys_of(
    transaction: Any, choice: Choice, path: str
) -> tuple[bytes | None, Callable[[bytes], bytes] | None]:
    """Find what keys of images with numbers begin with, and how those of their labels are made.

    There is no beginning where keys have no numbers, and no label where none is there.
    """
    image = IMAGE if _has_numbers(transaction) else None
    if choice.image_field:
        image = _prefix(choice.image_field, path)
    if image is None and choice.label_field:
        raise RecordIOError(
            "its keys are not such as image-000000001, and what belongs to an image is not known",
            path=path,
        )
    if image is None or not choice.has_labels:
        return image, None
    start, pattern = len(image), choice.label_field
    if pattern:
        _prefix(pattern, path)
        return image, lambda key: (pattern % int(key[start:])).encode()
    prefixes = (name.encode() + b"-" for name in LABELS)
    label_prefix = next((prefix for prefix in prefixes if _has(transaction, prefix)), None)
    return image, None if label_prefix is None else lambda key: label_prefix + key[start:]


def _is_numbered(key: bytes, prefix: bytes) -> bool:
    return key.startswith(prefix) and key[len(prefix) :].isdigit()


def _numbers(transaction: Any) -> Iterator[str]:
    """Name the patterns of keys whose first value is a number."""
    for name in _families(transaction):
        cursor = transaction.cursor()
        cursor.set_range(name + b"-")
        if len(cursor.value()) <= MOST_LABEL and number_of(bytes(cursor.value())) is not None:
            yield f"{name.decode()}-%0{len(cursor.key()) - len(name) - 1}d"


def _scan_field(file: StoredFile, choice: Choice) -> ContainedSamples:
    """Find the values of a field: image-000000001 has that with the key field-000000001."""
    field = choice.field
    keys: list[bytes] = []
    sizes: list[int] = []
    labels: list[list[float]] = []
    faults: dict[int, str] = {}
    environment = _environment(file.name)
    with environment.begin() as transaction:
        image, _ = _keys_of(
            transaction, replace(choice, has_labels=False, label_field=""), file.name
        )
        if image is None:
            raise FieldError(
                "it has no fields: its keys are not such as image-000000001, and what belongs to "
                "an image is not known",
                path=file.name,
            )
        for key, _ in _entries(transaction):
            if not _is_numbered(key, image):
                continue
            own, row = field.encode() + key[len(image) - 1 :], len(keys)
            value = transaction.get(own)
            row_labels = None
            try:
                if value is None:
                    raise FieldError(f"there is no key {own.decode()}")
                if len(value) > MAX_RECORD_LENGTH:
                    raise FieldError(f"it has {len(value)} bytes: at most {MAX_RECORD_LENGTH}")
                if value[:1] == b"[" and len(value) <= MOST_ROWS:
                    row_labels = labels_of_rows(value)
            except RecordIOError as error:
                value, faults[row] = None, error.reason
            keys.append(own)
            sizes.append(NO_CONTENT if value is None else len(value))
            labels.append(row_labels or [0.0])
    samples = ContainedSamples.of(range(len(keys)), sizes, labels, faults=faults)
    samples.set_names(keys)
    return samples


def _field_names(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the names before the numbers of keys, without those of images and labels."""
    environment = _environment(_shards(file)[0].name)
    patterns = choice.image_field or "image-%09d", choice.label_field or "label-%09d"
    taken = {pattern.partition("-%")[0].encode() for pattern in patterns}
    with environment.begin() as transaction:
        families = _families(transaction) if choice.image_field or _has_numbers(transaction) else []
    return [name.decode() for name in families if name not in taken]


def _families(transaction: Any) -> list[bytes]:
    """List what stands before the minus sign and the numbers of keys."""
    families = []
    cursor = transaction.cursor()
    there = cursor.first()
    while there:
        name = OF_FIELD.fullmatch(bytes(cursor.key()))
        if name is None:
            there = cursor.next()
            continue
        families.append(name[1])
        there = cursor.set_range(name[1] + b".")  # which comes behind the minus sign
    return families


def _entries(transaction: Any) -> Iterator[tuple[bytes, memoryview]]:
    for key, value in transaction.cursor():
        yield bytes(key), value


def _has(transaction: Any, prefix: bytes) -> bool:
    """Tell whether a key begins in some way."""
    cursor = transaction.cursor()
    return cursor.set_range(prefix) and bytes(cursor.key()).startswith(prefix)


def _has_numbers(transaction: Any) -> bool:
    """Tell whether keys are such as image-000000001."""
    cursor = transaction.cursor()
    return cursor.set_range(IMAGE) and re.match(rb"image-\d+$", bytes(cursor.key())) is not None


class _PickleError(Exception):
    """Raised for a value that is a pickle."""


def _measured(value: memoryview) -> tuple[int, float | None]:
    """Return the size of the image in a value, and the label if the value has one."""
    label = None
    if kind_of(value) not in ("other", "empty"):
        size = len(value)
    else:
        datum = _datum(value)
        label, size = float(datum.label), len(datum.data)
        check_labels([datum.label])
        if not datum.encoded:
            size += len(_head(datum))
    if size > MAX_RECORD_LENGTH:
        raise RecordIOError(f"it has {size} bytes: at most {MAX_RECORD_LENGTH} are possible")
    return size, label


def _content(value: memoryview) -> bytes:
    """Return the image in a value; the pixels of a Datum become a PPM or PGM."""
    if kind_of(value) not in ("other", "empty"):
        return bytes(value)
    datum = _datum(value)
    if datum.encoded:
        return bytes(datum.data)
    head = _head(datum)
    pixels = np.frombuffer(datum.data, np.uint8).reshape(datum.channels, datum.height, datum.width)
    return head + pixels[::-1].transpose(1, 2, 0).tobytes()  # Caffe's channels are blue, green, red


def _head(datum: Datum) -> bytes:
    """Make what stands before the pixels in a file of them."""
    shape = datum.channels, datum.height, datum.width
    if datum.channels not in (1, 3) or datum.height < 1 or datum.width < 1:
        raise RecordIOError(f"its pixels have the shape {shape}: 1 or 3 channels are possible")
    if len(datum.data) != datum.channels * datum.height * datum.width:
        raise CorruptRecordError(f"it has {len(datum.data)} bytes of pixels for the shape {shape}")
    return b"P%d\n%d %d\n255\n" % (6 if datum.channels == 3 else 5, datum.width, datum.height)


def _datum(value: memoryview) -> Datum:
    """Read Caffe's message; anything else is an error that says what it is."""
    numbers, data = {1: 0, 2: 0, 3: 0, 5: 0, 7: 0}, None
    try:
        for number, kind, content in fields(value):
            if number in numbers and kind == VARINT:
                numbers[number] = content
            elif number == 4 and kind == BYTES:
                data = value[slice(*content)]
            elif number == 6:
                raise RecordIOError("it is a Datum of floats: write pixels of 8 bits")
            else:
                raise ValueError
        if data is None:
            raise ValueError
    except ValueError as error:
        if isinstance(error, RecordIOError):
            raise
        if PICKLE.match(bytes(value[:2])) and value[-1:] == b".":
            raise _PickleError from None
        raise CorruptRecordError("its value is neither an image nor a Datum of Caffe") from None
    label = numbers[5] - (1 << 64) if numbers[5] >> 63 else numbers[5]
    return Datum(numbers[1], numbers[2], numbers[3], data, label, bool(numbers[7]))


def _number(text: memoryview | None, key: bytes) -> float:
    """Read the label that belongs to an image."""
    if text is None:
        raise RecordIOError(f"there is no label for {key.decode(errors='replace')}")
    value = number_of(bytes(text[:MOST_LABEL]))
    if value is None:
        raise LabelError(
            f"the label of {key.decode(errors='replace')} is text, {bytes(text[:40])!r}: labels "
            "are finite numbers here; number the texts, and write the numbers, or choose other "
            "keys by label_field="
        )
    check_labels([value])
    return value


class LmdbRows:
    """The values of a database; any thread may read, and every process opens it for itself."""

    def __init__(self, file: StoredFile, samples: ContainedSamples, choice: Choice = USUAL) -> None:
        self._path, self._samples = _shards(file)[0].name, samples
        self._is_field = bool(choice.field)
        self._environment: tuple[int, _Environment] | None = None
        self._version = self._opened().version

    def read(self, number: int) -> bytes:
        """Read one image, by its number in `ContainedSamples.offsets`."""
        samples = self._samples
        assert samples.name_starts is not None
        first, end = samples.name_starts[number : number + 2].tolist()
        key = samples.names[first:end].tobytes()
        environment = self._opened()
        with environment.begin() as transaction:
            value = transaction.get(key)
            if value is None:
                raise RecordIOError(f"the key {key!r} is gone: nobody may write the database")
            try:
                return bytes(value) if self._is_field else _content(value)
            except _PickleError:
                raise RecordIOError("its value is a pickle now, which is not read") from None

    def _opened(self) -> _Environment:
        environment = self._environment
        if environment is None or environment[0] != os.getpid():
            environment = self._environment = os.getpid(), _environment(self._path)
        if getattr(self, "_version", environment[1].version) != environment[1].version:
            raise RecordIOError(CHANGED, path=self._path)
        return environment[1]

    def close(self) -> None:
        """Let the database go."""
        self._environment = None


LMDB = Container(
    "an LMDB database",
    _scan,
    is_it=_is_lmdb,
    shards=_shards,
    rows=LmdbRows,
    fields=_field_names,
    chooses=frozenset(["field", "image_field", "label_field", "has_labels"]),
    rules=2,
)
