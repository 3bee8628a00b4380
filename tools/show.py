"""`recordio head` and `recordio cat`: the first records as a table, and unchanged contents.

Nothing is decoded; `cat` writes files only into a folder that is named.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from recordio import RecordReader
from recordio.bytes.storage import AtomicOutput, naming_output
from recordio.errors import RecordIOError
from recordio.formats.table import kind_of, suffixes_of
from recordio.packs.open_pack import open_pack
from recordio.payload import read_payload

from .outputs import check_outputs
from .payloads import describe, labels_of, number_text

COLUMNS = ("position", "key", "id", "flag", "labels", "bytes", "kind", "content")
SHOWN_LABELS = 4


def head_lines(path: str, count: int) -> Iterator[str]:
    """Yield the lines of a table of the first records of a pack, its column names first.

    Lines before a damaged record come before the error.
    """
    reader = open_pack(path).reader
    rows: list[tuple[str, ...]] = [COLUMNS]
    damage: RecordIOError | None = None
    try:
        for position, record in enumerate(itertools.islice(reader, min(count, sys.maxsize))):
            # Without an index keys are positions, and asking for them would scan the file.
            key = position if reader.index_path is None else int(reader.keys[position])
            rows.append(table_row(position, key, record))
    except RecordIOError as error:
        damage = error
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows:
        yield "  ".join(
            # Numbers to the right.
            text.rjust(width) if name in COLUMNS[:4] + ("bytes",) else text.ljust(width)
            for name, text, width in zip(COLUMNS, row, widths, strict=True)
        ).rstrip()
    if damage is not None:
        raise damage


def table_row(position: int, key: int, record: Any) -> tuple[str, ...]:
    """Return one line of the table."""
    header, content, kind = read_payload(record)
    try:
        what = describe(content, kind)
    except RecordIOError as error:
        what = error.reason
    number, flag, labels = "-", "-", "-"
    if header is not None:
        number, flag = str(header.id), str(header.flag)
        values = labels_of(header)
        labels = " ".join(number_text(value) for value in values[:SHOWN_LABELS])
        labels += " ..." if len(values) > SHOWN_LABELS else ""
    return str(position), str(key), number, flag, labels, str(len(record)), kind, what


def chosen(reader: RecordReader, numbers: Sequence[int], by_position: bool) -> Iterator[Any]:
    """Yield the records with some keys, or at some positions."""
    for number in numbers:
        if by_position and not -len(reader) <= number < len(reader):
            raise RecordIOError(
                f"there is no position {number} among {len(reader)} records", path=reader.path
            )
        yield reader[number] if by_position else reader.by_key(number)


def content_of(record: Any, raw: bool) -> memoryview:
    """Return what follows the image header of a record, or all of it."""
    return memoryview(record) if raw else read_payload(record).content


def write_records(
    path: str,
    numbers: Sequence[int],
    by_position: bool,
    raw: bool,
    output: BinaryIO,
    force: bool = False,
) -> None:
    """Write contents, or with `raw` whole records, one after the other.

    `numbers` are keys, or positions, which may count from the end with a minus.  Without `force` a
    terminal gets text alone.
    """
    reader = open_pack(path).reader
    for record in chosen(reader, numbers, by_position):
        content = content_of(record, raw)
        if not force and output.isatty() and not _is_text(content):
            raise RecordIOError(
                "binary content would spoil the terminal: redirect it (> FILE), name a folder with "
                "--output FOLDER, or give --output - to write it all the same",
                path=path,
            )
        output.write(content)


def _is_text(content: memoryview) -> bool:
    """Return True if a terminal shows it as it is."""
    try:
        text = str(content, "utf-8")
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\t\r\n" for letter in text)


def save_records(
    path: str, numbers: Sequence[int], by_position: bool, raw: bool, folder: str, force: bool
) -> list[str]:
    """Write each content to a file named after its key or position, and return the names.

    The parameters are those of `write_records`; `force` replaces existing files.
    """
    reader = open_pack(path).reader
    contents = [content_of(record, raw) for record in chosen(reader, numbers, by_position)]
    paths = []
    for number, content in zip(numbers, contents, strict=True):
        suffix = ".record" if raw else suffixes_of(kind_of(content))[0]
        paths.append(os.path.join(folder, f"{number}{suffix}"))
    check_outputs(paths, force)
    for target, content in zip(paths, contents, strict=True):
        with naming_output(target), AtomicOutput(target) as output:
            output.write(content)
    return paths
