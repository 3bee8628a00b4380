"""Pack the images of a list into a record file and its index.

Threads read and encode, this one writes in list order through `recordio.RecordWriter`, which
publishes both files at the end or not at all.  Bad images are collected and
reported; how an image is encoded is decided in `encode`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import cv2

from recordio import RecordIOError, RecordWriter
from recordio.lists import ListEntry
from recordio.ordered import default_threads
from recordio.storage import naming_output

from .console import progress_bar
from .encode import EncodeOptions, encode_record
from .image_list import ImageList, Skipped, read_list, write_skipped
from .images import one_opencv_thread
from .optimize import Tally, check_available
from .ordered_pool import map_in_order

#: What `pack` packs: a ``.lst`` file or its content.
Source: TypeAlias = "str | os.PathLike[str] | ImageList | Sequence[ListEntry]"

__all__ = ["PackReport", "PackingError", "pack", "pack_together"]


class PackingError(RecordIOError):
    """Packing ended without output because of bad images.

    Attributes
    ----------
    skipped : list of Skipped
        The images.
    """

    def __init__(self, reason, *, skipped=(), **place):
        super().__init__(reason, **place)
        self.skipped = list(skipped)


@dataclass
class PackReport:
    """What `pack` did.

    Attributes
    ----------
    path : str
        The record file.
    packed : int
        Number of records written.
    skipped : list of Skipped
        What was left out, with the reason: first list lines, then images in list order.
    bytes_written : int
        Sum of the record sizes in bytes.
    seconds : float
        Wall-clock time, publication included.
    optimized : Tally
        What became of the images that were to be optimized.
    """

    path: str
    packed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    bytes_written: int = 0
    seconds: float = 0.0
    optimized: Tally = field(default_factory=Tally)


def pack(
    source: Source,
    root: str | os.PathLike[str],
    prefix: str | os.PathLike[str],
    options: EncodeOptions | None = None,
    *,
    threads: int | None = None,
    strict: bool = False,
    checksums: bool = False,
    progress: bool | Callable[[int], object] = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackReport:
    """Pack images into ``PREFIX.rec`` and ``PREFIX.idx``.

    Index keys and header ids are the ids of the list, and records are in its order, whatever the
    number of threads.

    Parameters
    ----------
    source : path, ImageList or sequence of ListEntry
        A ``.lst`` file or its content.
    root : path
        Folder that the paths of the list are relative to.
    prefix : path
        Output path or URL without suffix.  Existing files are replaced at the end.
    options : EncodeOptions, optional
        What to do with each image.
    threads : int, optional
        Number of encoding threads; all cores by default.
    strict : bool
        Stop at the first bad image.
    checksums : bool
        Write ``PREFIX.crc`` as well, the checksums of the records.
    progress : bool or callable
        Show a progress bar on standard error; or what is told how many images more were read.
    cancelled : callable, optional
        Asked between images; when true, `KeyboardInterrupt` is raised and nothing is published.

    Returns
    -------
    PackReport
        ``PREFIX.skipped.txt`` holds the skipped images when there are any.

    Raises
    ------
    PackingError
        A bad image with `strict`, or not one good image: nothing was published.
    OSError
        The list cannot be read or the output not written; nothing was published.
    ImportError
        google-crc32c, which computes `checksums`, is not installed.
    ValueError
        `threads` is less than 1.

    Examples
    --------
    >>> import cv2, numpy as np, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = cv2.imwrite(str(folder / "red.png"), np.full((8, 8, 3), (0, 0, 255), np.uint8))
    >>> report = pack([ListEntry(7, (1.0,), "red.png")], folder, folder / "out")
    >>> report.packed, report.skipped, sorted(path.name for path in folder.glob("out.*"))
    (1, [], ['out.idx', 'out.rec'])
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
    root: str | os.PathLike[str],
    options: EncodeOptions | None = None,
    *,
    threads: int | None = None,
    strict: bool = False,
    checksums: bool = False,
    progress: bool | Callable[[int], object] = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[PackReport]:
    """Pack several lists and publish them at the end: with an error in one, none appears.

    Parameters
    ----------
    jobs : sequence of (source, prefix)
        As the parameters of `pack`, one pair for each pair of files.
    root, options, threads, strict, checksums, progress, cancelled
        As for `pack`.

    Returns
    -------
    list of PackReport
        One for each job.

    Raises
    ------
    PackingError, OSError, ValueError
        As for `pack`.
    """
    reports = [PackReport(f"{os.fspath(prefix)}.rec") for _, prefix in jobs]
    prefixes = [os.fspath(prefix) for _, prefix in jobs]
    with contextlib.ExitStack() as publication:
        for (source, _), prefix, report in zip(jobs, prefixes, reports, strict=True):
            start = time.perf_counter()
            publication.enter_context(naming_output(report.path))
            writer = publication.enter_context(
                RecordWriter(report.path, f"{prefix}.idx", checksums=checksums)
            )
            try:
                _write_records(
                    writer,
                    _as_image_list(source),
                    os.fspath(root),
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


def _write_records(
    writer: RecordWriter,
    images: ImageList,
    root: str,
    report: PackReport,
    options: EncodeOptions,
    threads: int,
    strict: bool,
    progress: bool | Callable[[int], object],
    cancelled: Callable[[], bool],
) -> None:
    """Encode in threads, write in order, and fill in the report."""
    if threads < 1:
        raise ValueError(f"the number of threads must be at least 1, not {threads}")
    if options.optimize:
        check_available()
    entries = images.entries

    def skip(item: Skipped) -> None:
        if strict:
            raise PackingError(item.reason, path=os.path.join(root, item.path), skipped=[item])
        report.skipped.append(item)

    for item in images.skipped:
        skip(item)

    def encode(entry: ListEntry) -> bytes | Skipped:
        try:
            return encode_record(entry, root, options, report.optimized)
        except RecordIOError as error:
            return Skipped(entry.path, error.reason)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise  # it would be the same for every image that follows
            return Skipped(entry.path, error.strerror or str(error))
        except (cv2.error, MemoryError) as error:
            return Skipped(entry.path, str(error) or "not enough memory")

    parts = map_in_order(encode, entries, threads, size=len, cancelled=cancelled)
    with (
        one_opencv_thread(),
        contextlib.closing(parts),
        _advancing(progress, len(entries), report.path) as advance,
    ):
        position = 0
        for part in parts:
            for record in part:
                if isinstance(record, Skipped):
                    skip(record)
                else:
                    writer.write(record, entries[position].id)
                    report.packed += 1
                    report.bytes_written += len(record)
                position += 1
            advance(len(part))
    if report.skipped and not report.packed:
        path, reason = report.skipped[0]
        raise PackingError(
            f"not one of its {len(report.skipped)} images could be packed; the first, {path}: "
            f"{reason}. Is {root} the folder that the list was made for?",
            path=report.path,
            skipped=report.skipped,
        )


def _advancing(
    progress: bool | Callable[[int], object], total: int, path: str
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
