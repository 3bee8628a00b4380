"""Items of a source become a record file, an index and, where files had names, a list.

Items that cannot be converted are reported; files appear whole or not at all.
"""

from __future__ import annotations

import collections
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from recordio import IRHeader, RecordReader, pack
from recordio.bytes.storage import naming_output
from recordio.errors import LabelError, RecordIOError, RecordTooLargeError
from recordio.frames.companions import CLASSES, LIST, pack_paths, set_paths
from recordio.list_files import UNLISTED, ListEntry, check_labels, safe_name
from recordio.packs.classes import format_classes
from recordio.packs.pack_writer import PackWriter

from ..console import progress_bar
from ..image_list import Skipped, format_line, write_skipped
from ..outputs import temporary_folder
from .format import Counts, Import, ImportSource, Item, LeftOut

#: Kinds of things left out that are counted one by one, and shown; the source names them.
MOST_KINDS, SHOWN_KINDS = 1000, 20
LONGEST_KIND = 80
OTHER_KINDS = "others"


@dataclass
class ImportReport:
    """Result of a conversion to a record file.

    Attributes
    ----------
    path : str
        The record file.
    records : int
        Number of records in it.
    bytes_written : int
        Bytes in these records.
    skipped : list of Skipped
        Items that could not be converted: the path of each, and the reason.
    left_out : collections.Counter
        Numbers of things that were not stored, by kind: outlines, other files of a sample, images
        without boxes.  Those of skipped items are not counted.
    fields : collections.Counter
        Number of records in each field, by its name.
    notes : list of str
        Lines about what was read in another way than somebody may expect.
    seconds : float
        Duration of the conversion.
    """

    path: str
    records: int = 0
    bytes_written: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    left_out: collections.Counter[str] = field(default_factory=collections.Counter)
    fields: collections.Counter[str] = field(default_factory=collections.Counter)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, things: Counts) -> None:
        """Add things that were left out."""
        for name, number in things.items():
            kind = UNLISTED.sub("?", name)[:LONGEST_KIND]
            if kind not in self.left_out and len(self.left_out) >= MOST_KINDS:
                kind = OTHER_KINDS
            self.left_out[kind] += number

    def not_stored(self) -> str:
        """Describe the things that were left out; the text is empty if there were none."""
        if not self.left_out:
            return ""
        ordered = self.left_out.most_common()
        parts = [f"{number} {kind}" for kind, number in ordered[:SHOWN_KINDS]]
        if rest := ordered[SHOWN_KINDS:]:
            parts.append(f"{sum(number for _, number in rest)} of {len(rest)} other kinds")
        return f"not stored: {', '.join(parts)}"


def convert(
    row: Import,
    settings: Any,
    prefix: str,
    *,
    check: Callable[[Sequence[str]], object],
    progress: bool | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ImportReport:
    """Convert files of a format; ``check(paths)`` may refuse the output before any work."""
    check([*pack_paths(prefix), *row.beside(prefix)])
    if row.open is None:
        assert row.pack is not None
        return row.pack(settings, prefix, check=check, progress=progress, cancelled=cancelled)
    source = row.open(settings)
    check(set_paths(prefix, source.fields))
    return (row.write or import_records)(
        source,
        prefix,
        shuffle=(settings.seed or 0) if settings.shuffle else None,
        strict=settings.strict,
        progress=progress,
        cancelled=cancelled,
    )


def import_records(
    source: ImportSource,
    prefix: str,
    *,
    shuffle: int | None = None,
    strict: bool = False,
    progress: bool | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ImportReport:
    """Write the items of a source to ``PREFIX.rec`` and ``PREFIX.idx``.

    The id and key of a record is the position of its item in the source, also where items were
    left out and where records are shuffled.  Existing files are replaced, and the list and class
    names of an older pack are removed.

    Memory does not grow with the number of items, except for names that are shuffled.  `shuffle` is
    the seed of the order of the records, which are then written twice.  With `strict` an item that
    cannot be converted is an error.  After an error, or when `cancelled` returns true, nothing is
    published.
    """
    start = time.perf_counter()
    report = ImportReport(f"{prefix}.rec")
    with contextlib.ExitStack() as stack:
        stack.enter_context(naming_output(report.path))
        items = _watched(source, report, strict, progress, cancelled)
        if shuffle is None:
            with _pack_writer(source, prefix) as writer:
                _write(items, writer, report, partial(_add_name, writer))
                _check_any(report)
        else:
            folder = stack.enter_context(temporary_folder(prefix))
            _write_shuffled(source, items, folder, prefix, report, shuffle, progress, cancelled)
    write_skipped(prefix, report.skipped)
    report.notes = list(source.notes())
    report.seconds = time.perf_counter() - start
    return report


def _watched(
    source: ImportSource,
    report: ImportReport,
    strict: bool,
    progress: bool | None,
    cancelled: Callable[[], bool],
) -> Iterator[tuple[int, Item, bytes]]:
    """Yield id, item and record of everything that can be converted."""
    with (
        contextlib.ExitStack() as stack,
        progress_bar(source.total, os.path.basename(report.path), "records", progress) as advance,
    ):
        if hasattr(source.items, "close"):
            stack.callback(source.items.close)  # its threads and files
        number = -1
        for item in source.items:
            if cancelled():
                raise KeyboardInterrupt
            if isinstance(item, LeftOut):
                report.count(item.things)
                continue
            advance(1)
            number += 1
            if isinstance(item, Item):
                try:
                    record = _as_record(number, item)
                except (LabelError, RecordTooLargeError) as error:
                    item = Skipped(item.name or f"item {number}", error.reason)
                else:
                    report.count(item.left_out)
                    yield number, item, record
                    continue
            if strict:
                raise RecordIOError(item.reason, path=item.path)
            report.skipped.append(item)


def _as_record(number: int, item: Item) -> bytes:
    if len(item.content) + 4 * len(item.labels or ()) >= 2**29 - 24:
        raise RecordTooLargeError(f"{len(item.content)} bytes are too much for one record")
    if item.labels is None:
        return item.content
    for name, (labels, content) in item.fields.items():
        check_labels(labels)
        if len(content) + 4 * len(labels) >= 2**29 - 24:
            raise RecordTooLargeError(
                f"its {name} of {len(content)} bytes is too much for one record"
            )
    check_labels(item.labels)
    return _with_header(number, item.labels, item.content)


def _with_header(number: int, labels: Sequence[float], content: bytes) -> bytes:
    if len(labels) > 1:
        return pack(IRHeader(0, labels, number, 0), content)
    return pack(IRHeader(0, labels[0] if labels else 0.0, number, 0), content)


def _write(
    items: Iterator[tuple[int, Item, bytes]],
    writer: PackWriter,
    report: ImportReport,
    add_name: Callable[[int, Item], None],
) -> None:
    with contextlib.closing(items):  # type: ignore[type-var]
        for number, item, record in items:
            writer.write(record, number)
            add_name(number, item)
            report.records += 1
            report.bytes_written += len(record)
            for name, (labels, content) in item.fields.items():
                writer.fields[name].write(_with_header(number, labels, content), number)
                report.fields[name] += 1


def _write_shuffled(
    source: ImportSource,
    items: Iterator[tuple[int, Item, bytes]],
    folder: str,
    prefix: str,
    report: ImportReport,
    seed: int,
    progress: bool | None,
    cancelled: Callable[[], bool],
) -> None:
    from iterators.core.order import ShuffledOrder  # slow to load

    named: dict[int, Item] = {}
    fields = source.fields

    def remember(number: int, item: Item) -> None:
        if item.name:
            named[number] = item._replace(content=b"", fields={})

    path = os.path.join(folder, "ordered.rec")
    with PackWriter(path, f"{folder}/ordered.idx", fields) as writer:
        _write(items, writer, report, remember)
    _check_any(report)
    with (
        contextlib.ExitStack() as stack,
        RecordReader(path, f"{folder}/ordered.idx") as reader,
        _pack_writer(source, prefix) as writer,
        progress_bar(len(reader), "shuffling", "records", progress) as advance,
    ):
        beside = {
            name: stack.enter_context(
                RecordReader(f"{folder}/ordered.{name}.rec", f"{folder}/ordered.{name}.idx")
            )
            for name in fields
        }
        there = {name: set(records.keys.tolist()) for name, records in beside.items()}
        order = ShuffledOrder(len(reader), seed).at(0, np.arange(len(reader)))
        for position in order.tolist():
            if cancelled():
                raise KeyboardInterrupt
            key = int(reader.keys[position])
            writer.write(reader[position], key)
            for name, keys in there.items():
                if key in keys:
                    writer.fields[name].write(beside[name].by_key(key), key)
            if key in named:
                _add_name(writer, key, named[key])
            advance(1)


def _check_any(report: ImportReport) -> None:
    if report.records:
        return
    left_out = report.not_stored()
    if not report.skipped:
        why = left_out or "the source is empty"
        raise RecordIOError(f"there is nothing to convert: {why}", path=report.path)
    path, reason = report.skipped[0]
    raise RecordIOError(
        f"not one of {len(report.skipped)} items could be converted; the first, {path}: {reason}"
        + (f"; {left_out}" if left_out else ""),
        path=report.path,
    )


def _pack_writer(source: ImportSource, prefix: str) -> PackWriter:
    """Open the output, with a list if items have names, and those of classes if there are any."""
    companions = {
        prefix + LIST.ending: lambda: b"",
        prefix + CLASSES.ending: lambda: format_classes(dict(enumerate(source.classes))),
    }
    return PackWriter(
        f"{prefix}.rec",
        f"{prefix}.idx",
        source.fields,
        describe=source.describe,
        companions=companions,
    )


def _add_name(writer: PackWriter, number: int, item: Item) -> None:
    """Write the line of an item in the list; a name that no line can hold is left out."""
    if name := safe_name(item.name):
        line = format_line(ListEntry(number, tuple(item.labels or (0.0,)), name))
        names = os.path.splitext(writer.path)[0] + LIST.ending
        writer.companion(names).write(line.encode("utf-8", "surrogateescape"))
