"""Pack the images of a list into a record file and its index.

Threads read and encode, this one writes in list order through `recordio.RecordWriter`, which
publishes both files at the end or not at all.  Bad images are collected and
reported; how an image is encoded is decided in `encode`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from recordio import ImageDecodeError, IRHeader, RecordIOError
from recordio import pack as pack_record
from recordio.bytes.storage import naming_output
from recordio.encodings import missing_name, path_of_name
from recordio.formats import by_opencv
from recordio.list_files import ListEntry
from recordio.ordered import default_threads, map_in_order
from recordio.packs.fields_meta import FieldMeta
from recordio.packs.pack_writer import PackWriter

from .console import progress_bar
from .encode import EncodeOptions, encode_record, loses_bits
from .field_sources import FieldSources, Value
from .image_list import ImageList, Skipped, read_list, write_skipped
from .images import one_opencv_thread
from .optimize import Tally, check_available

#: Images to pack: a ``.lst`` file or its content.
Source: TypeAlias = "str | os.PathLike[str] | ImageList | Sequence[ListEntry]"
#: Whether a bar is shown, None where standard error is a terminal; or what is called instead.
Progress: TypeAlias = bool | Callable[[int], object] | None

#: Without blocking: a pipe named in a list must not hang the run.
OPEN_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC")
)


class Fields(Protocol):
    """Fields of images by the entries of a list, wherever they lie."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the fields."""

    def of(self, entry: ListEntry, image: bytes) -> Mapping[str, Value]:
        """Find those of an image, as it was read, in any thread; missing ones are not there."""

    def described(self) -> Mapping[str, FieldMeta]:
        """Describe them when all records were looked at."""


class Images(Protocol):
    """Images by the entries of a list, wherever they lie."""

    #: Question at the end of a message that not one image can be used; may be empty.
    doubt: str

    def read(self, entry: ListEntry) -> bytes:
        """Read one as it is stored, in any thread."""

    def of_fields(self, options: EncodeOptions) -> Fields:
        """Return what finds the fields of the images."""

    def name_of(self, entry: ListEntry) -> str:
        """Name it in reports."""

    def path_of(self, name: str) -> str:
        """Name the file of an image that was named in a report, for errors."""


class ListedFiles:
    """Images in files, whose paths in a list are relative to a folder."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.doubt = f" Is {root} the folder that the list was made for?"

    def read(self, entry: ListEntry) -> bytes:
        """Read the file of an image, whose list may have been made on Windows."""
        path = path_of_name(self.path_of(entry.path))
        try:
            return _read_file(path)
        except FileNotFoundError:
            if "\\" not in entry.path:
                raise
            return _read_file(path_of_name(self.path_of(entry.path.replace("\\", "/"))))

    def of_fields(self, options: EncodeOptions) -> Fields:
        """Return what finds the fields in folders and tables."""
        return FieldSources(options)

    def name_of(self, entry: ListEntry) -> str:
        """Name the file as the list does."""
        return entry.path

    def path_of(self, name: str) -> str:
        """Return the path of the file."""
        return os.path.join(self.root, name)


def _read_file(path: str) -> bytes:
    """Return the content of a regular file, with as few system calls as possible."""
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(status.st_mode):
            raise ImageDecodeError("not a regular file")
        data = os.read(descriptor, status.st_size)
        if len(data) == status.st_size:
            return data
        parts = [data]  # one read gives at most 2 GiB, and less at the end of a shrinking file
        while parts[-1]:
            parts.append(os.read(descriptor, 1 << 30))
        return b"".join(parts)
    finally:
        os.close(descriptor)


class PackingError(RecordIOError):
    """Packing ended without output because of the bad images in `skipped`."""

    def __init__(self, reason, *, skipped=(), **location):
        super().__init__(reason, **location)
        self.skipped = list(skipped)


@dataclass
class PackingReport:
    """Result of `pack`."""

    path: str
    packed: int = 0
    #: First list lines, then images in list order.
    skipped: list[Skipped] = field(default_factory=list)
    #: The ids of these images.
    skipped_ids: set[int] = field(default_factory=set)
    #: By the name of each field the images that have none, in list order.
    without: dict[str, list[str]] = field(default_factory=dict)
    bytes_written: int = 0  # in records
    seconds: float = 0.0  # by the clock on the wall, publication included
    optimized: Tally = field(default_factory=Tally)
    #: Images of more than 8 bits of which the upper 8 are stored.
    reduced_to_8_bits: int = 0


def pack(
    source: Source,
    root: str | os.PathLike[str] | Images,
    prefix: str | os.PathLike[str],
    options: EncodeOptions | None = None,
    *,
    threads: int | None = None,
    strict: bool = False,
    checksums: bool = False,
    progress: Progress = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackingReport:
    """Pack images into ``PREFIX.rec`` and ``PREFIX.idx``.

    Index keys and header ids are the ids of the list, and records are in its order, whatever the
    number of threads.

    `source` is a ``.lst`` file or its content, and the paths in it are relative to `root`, or
    `root` has the images.
    Existing files are replaced at the end.  ``PREFIX.skipped.txt`` holds the skipped images when
    there are any, and ``PREFIX.crc`` the checksums of the records, if `checksums` are wanted.
    After an error, or when `cancelled` returns true, nothing is published; a bad image is an error
    with `strict`.

    `progress` shows a progress bar on standard error; a function gets the number of further images
    that were read.
    """
    jobs = [(source, prefix)]
    (report,) = pack_together(
        jobs,
        root,
        options,
        threads=threads,
        strict=strict,
        checksums=checksums,
        progress=progress,
        cancelled=cancelled,
    )
    return report


def pack_together(
    jobs: Sequence[tuple[Source, str | os.PathLike[str]]],
    root: str | os.PathLike[str] | Images,
    options: EncodeOptions | None = None,
    *,
    threads: int | None = None,
    strict: bool = False,
    checksums: bool = False,
    progress: Progress = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[PackingReport]:
    """Pack several lists and publish them at the end: with an error in one, none appears.

    A job is the `source` and the `prefix` of `pack`, which takes the other parameters, too.
    """
    reports = [PackingReport(f"{os.fspath(prefix)}.rec") for _, prefix in jobs]
    prefixes = [os.fspath(prefix) for _, prefix in jobs]
    images = ListedFiles(os.fspath(root)) if isinstance(root, (str, os.PathLike)) else root
    with contextlib.ExitStack() as publication:
        for (source, _), prefix, report in zip(jobs, prefixes, reports, strict=True):
            start = time.perf_counter()
            publication.enter_context(naming_output(report.path))
            fields = images.of_fields(options or EncodeOptions())
            report.without = {name: [] for name in fields.names}
            writer = publication.enter_context(
                PackWriter(report.path, f"{prefix}.idx", fields.names, checksums, fields.described)
            )
            try:
                _write_records(
                    writer,
                    fields,
                    _as_image_list(source),
                    images,
                    report,
                    options or EncodeOptions(),
                    default_threads() if threads is None else threads,
                    strict,
                    progress,
                    cancelled,
                )
            except PackingError as error:
                if not strict:
                    write_skipped(prefix, error.skipped)
                raise
            report.seconds = time.perf_counter() - start
        start = time.perf_counter()
    for prefix, report in zip(prefixes, reports, strict=True):
        report.seconds += (time.perf_counter() - start) / len(reports)
        write_skipped(prefix, report.skipped)
    return reports


class _Encoded(NamedTuple):
    """The records of an image and of its fields."""

    image: bytes
    fields: dict[str, bytes]
    has_lost_bits: bool


def _size(record: _Encoded | Skipped) -> int:
    """Count the bytes that wait to be written."""
    if isinstance(record, Skipped):
        return 0
    return len(record.image) + sum(map(len, record.fields.values()))


def _write_records(
    writer: PackWriter,
    fields: Fields,
    listed: ImageList,
    images: Images,
    report: PackingReport,
    options: EncodeOptions,
    threads: int,
    strict: bool,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> None:
    """Encode in threads, write in order, and fill in the report."""
    if threads < 1:
        raise ValueError(f"the number of threads must be at least 1, not {threads}")
    if options.optimize:
        check_available()
    entries = listed.entries

    def skip(item: Skipped) -> None:
        if strict:
            raise PackingError(item.reason, path=images.path_of(item.path), skipped=[item])
        report.skipped.append(item)

    for item in listed.skipped:
        skip(item)

    def encode(entry: ListEntry) -> _Encoded | Skipped:
        try:
            data = images.read(entry)
            record = encode_record(entry, data, options, report.optimized)
            beside = {
                name: pack_record(
                    IRHeader(0, labels if len(labels) > 1 else labels[0], entry.id, 0), content
                )
                for name, (labels, content) in fields.of(entry, data).items()
            }
            return _Encoded(record, beside, loses_bits(data, options))
        except RecordIOError as error:
            return Skipped(images.name_of(entry), error.reason)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise  # it would be the same for every image that follows
            reason = error.strerror or str(error)
            if isinstance(error, FileNotFoundError):
                reason += missing_name(str(error.filename))
            return Skipped(images.name_of(entry), reason)
        except by_opencv.errors() + (MemoryError,) as error:
            return Skipped(images.name_of(entry), str(error) or "not enough memory")

    records = map_in_order(encode, entries, threads, size=_size, cancelled=cancelled)
    with (
        one_opencv_thread(),
        contextlib.closing(records),
        _advancing(progress, len(entries), report.path) as advance,
    ):
        for entry, record in zip(entries, records, strict=True):
            advance(1)
            if isinstance(record, Skipped):
                skip(record)
                report.skipped_ids.add(entry.id)
                continue
            writer.write(record.image, entry.id)
            for name, missing in report.without.items():
                if name in record.fields:
                    writer.fields[name].write(record.fields[name], entry.id)
                else:
                    missing.append(images.name_of(entry))
            report.packed += 1
            report.reduced_to_8_bits += record.has_lost_bits
            report.bytes_written += len(record.image)
    if report.skipped and not report.packed:
        path, reason = report.skipped[0]
        raise PackingError(
            f"not one of its {len(report.skipped)} images could be packed; the first, {path}: "
            f"{reason}.{images.doubt}",
            path=report.path,
            skipped=report.skipped,
        )


def _advancing(
    progress: Progress, total: int, path: str
) -> contextlib.AbstractContextManager[Callable[[int], object]]:
    if callable(progress):
        return contextlib.nullcontext(progress)
    return progress_bar(total, os.path.basename(path), "images", progress)


def _as_image_list(source: Source) -> ImageList:
    if isinstance(source, ImageList):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_list(source)
    return ImageList(list(source))
