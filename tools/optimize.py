"""Rewrite the JPEG images of a record file, or one image, without loss, and count them.

`recordio.formats.transcode` does the rewriting.  Everything that is no JPEG image, or cannot
be rewritten, is copied as it is; nothing is ever left out, repaired or decoded to pixels.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from recordio import RecordReader
from recordio.bytes.storage import naming_output
from recordio.errors import IndexFileError, RecordIOError
from recordio.formats.transcode.transcode import rewrite
from recordio.frames.encoder import MAX_RECORD_LENGTH, encode
from recordio.frames.index_file import read_index
from recordio.operations.kept_keys import KeptKeys
from recordio.ordered import map_in_order
from recordio.payload import read_payload

from .console import progress_bar

Content = TypeVar("Content", bytes, memoryview)


@dataclass
class Tally:
    """Numbers of images that were rewritten or left; several threads may count at the same time."""

    rewritten: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    left: Counter[str] = field(default_factory=Counter)  # by reason
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __reduce__(self):
        return Tally, (self.rewritten, self.bytes_before, self.bytes_after, self.left)

    def count(self, before: int, after: int | None, reason: str) -> None:
        """Count one image; `after` is None if it was left as it was."""
        with self._lock:
            if after is None:
                self.left[reason] += 1
            else:
                self.rewritten += 1
                self.bytes_before += before
                self.bytes_after += after

    def lines(self) -> list[str]:
        """Return one or two lines for people."""
        change = 100 * (self.bytes_after / max(self.bytes_before, 1) - 1) if self.rewritten else 0
        lines = [
            f"rewrote {self.rewritten} JPEG images without loss: {self.bytes_before / 1e6:.1f} MB "
            f"before, {self.bytes_after / 1e6:.1f} MB after ({change:+.1f} %)"
        ]
        if self.left:
            reasons = sorted(self.left.items(), key=lambda item: (-item[1], item[0]))
            lines.append(
                f"left {sum(self.left.values())} as they were: "
                + ", ".join(f"{count} {reason}" for reason, count in reasons)
            )
        return lines


@dataclass
class OptimizeReport:
    """Result of `optimize_records`."""

    path: str
    records: int = 0
    bytes_written: int = 0
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0


def check_available() -> None:
    """Raise ImageDecodeError, which says what to install, if nothing can be rewritten here."""
    rewrite(b"")


def optimize_image(data: Content, tally: Tally, restart: int | str = "auto") -> Content | bytes:
    """Rewrite an image if it is a JPEG file that can be rewritten without loss, and count it.

    `restart` is that of `iterators.optimize_jpeg`.  Other images are returned as they are.
    """
    rewritten, reason = rewrite(data, restart)
    tally.count(len(data), None if rewritten is None else len(rewritten), reason)
    return data if rewritten is None else rewritten


def optimize_records(
    path: str,
    prefix: str,
    index: str | None = None,
    restart: int | str = "auto",
    *,
    threads: int = 1,
    progress: bool | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> OptimizeReport:
    """Copy a record file with its JPEG images rewritten without loss.

    The records keep their order, headers, labels and ids, and the new index has the lines of the
    old one.  The list, the names of classes and the fields are copied.  The output does not depend
    on the number of threads.

    `index` is that of `path`; without one the keys of the new index are the positions.  `restart`
    is that of `iterators.optimize_jpeg`.  Existing files are replaced at the end, and nothing is
    published after an error or when `cancelled` returns true.
    """
    start = time.perf_counter()
    if threads < 1:
        raise ValueError(f"the number of threads must be at least 1, not {threads}")
    check_available()
    rewrite(b"", restart)  # refuses what is no interval, before any work
    report = OptimizeReport(f"{prefix}.rec")
    outputs = (report.path, f"{prefix}.idx")
    _check_different([path] if index is None else [path, index], outputs)

    # In file order, whatever the index lists.
    with RecordReader(path) as reader:
        offsets = np.array(reader.offsets)
        keys, lines = _index_lines(index, offsets)

        def optimize(position: int) -> bytes | memoryview:
            record = memoryview(reader.read_many([position], copy=True)[0])
            return _optimize_record(record, report.tally, restart)

        rows = range(len(offsets))
        records = map_in_order(optimize, rows, threads, size=len, cancelled=cancelled)
        written = np.empty(len(offsets), np.int64)
        with (
            naming_output(report.path),
            KeptKeys(path, *outputs) as output,
            contextlib.closing(records),
            progress_bar(len(offsets), os.path.basename(path), "records", progress) as advance,
        ):
            for record in records:
                frame = encode(record)
                written[report.records] = output.write_frames(frame, [len(frame)])[0]
                report.records += 1
                advance(1)
            output.list_records(keys, written[lines])
            report.bytes_written = output.tell()
    report.seconds = time.perf_counter() - start
    return report


def _check_different(inputs: list[str], outputs: tuple[str, str]) -> None:
    for old in inputs:
        for new in outputs:
            same = os.path.realpath(old) == os.path.realpath(new)
            if same or (os.path.exists(new) and os.path.exists(old) and os.path.samefile(old, new)):
                raise RecordIOError("it would be overwritten; give another output", path=old)


def _index_lines(index: str | None, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return key and position of the record of each line of an index, or of each record."""
    if index is None:
        return np.arange(len(offsets)), np.arange(len(offsets))
    keys, listed = read_index(index)
    lines = np.searchsorted(offsets, listed)
    is_record = lines < len(offsets)
    is_record[is_record] = offsets[lines[is_record]] == listed[is_record]
    if not is_record.all():
        line = int(np.argmin(is_record))
        raise IndexFileError(
            f"no record begins at offset {listed[line]}; recordio index --force writes a new index",
            path=index,
            line=line + 1,
        )
    return keys, lines


def _optimize_record(record: memoryview, tally: Tally, restart: int | str) -> bytes | memoryview:
    """Return the record with its content rewritten, or the record itself."""
    content = read_payload(record).content
    rewritten = optimize_image(content, tally, restart)
    if rewritten is content:
        return record
    size = len(record) - len(content) + len(rewritten)
    if size > MAX_RECORD_LENGTH:
        raise RecordIOError(f"a rewritten record has {size} bytes, too much for one record")
    return bytes(record[: len(record) - len(content)]) + rewritten
