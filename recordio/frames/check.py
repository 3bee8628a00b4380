"""Look for damage in record files.

Without checksums nobody looks into the payload of a record for more than misplaced heads: an
undecodable image is a whole record here.  With them a record is whole if its bytes are those that
were written, and nothing else is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recordio.bytes.files import StoredFile
from recordio.bytes.storage import AtomicOutput
from recordio.errors import (
    ChecksumError,
    ChecksumFileError,
    CorruptRecordError,
    IndexFileError,
)
from recordio.frames.checksums import (
    Checksums,
    checksum_entries,
    checksums_path,
    compare,
    format_checksums,
    is_checksums,
    read_checksums,
)
from recordio.frames.index_file import read_index
from recordio.frames.record_bytes import map_records
from recordio.frames.walk import walk

LARGEST_KEY = 2**63 - 1

Name = str | os.PathLike[str]
Offsets = NDArray[np.int64]
#: Keys and offsets.
Lines = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Problem:
    """One damaged stretch of a record file, or one disagreement with its index.

    Parameters
    ----------
    kind : str
        Kind of problem: ``"bad_magic"``, ``"truncated_payload"``, ``"wrong_length"``,
        ``"index_offset"``, ``"not_listed"``, ``"listed_twice"``, ``"checksum"`` ...
    reason : str
        The same in words.
    offset : int or None
        Byte offset in the record file at which the damage begins.
    record : int or None
        Number of the record, the same in errors of readers, iterators and commands.  Whole records
        and stretches of damage are numbered together from 0, in the order of the file; a stretch
        has one number, however many records it has destroyed.  With an index (or checksums), a
        record has its number among those that are listed, by offset, and damage has the number of
        the first listed record in it, or None.
    length : int
        Bytes of the stretch, which belong to no whole record; 0 for a problem of the index.
    key : int or None
        Key of the damaged record, if an index lists it.

    Examples
    --------
    >>> print(Problem("zeros", "zero bytes where a record should begin", 40, 3, 8))
    offset 40, record 3: zero bytes where a record should begin (8 bytes lost)
    """

    kind: str
    reason: str
    offset: int | None = None
    record: int | None = None
    length: int = 0
    key: int | None = None

    def __str__(self) -> str:
        position = ", ".join(
            f"{name} {value}"
            for name, value in (("offset", self.offset), ("record", self.record), ("key", self.key))
            if value is not None
        )
        lost = f" ({self.length} bytes lost)" if self.length else ""
        return f"{position}: {self.reason}{lost}" if position else self.reason + lost


@dataclass
class Report:
    """Findings of `verify` or `repair`.

    Attributes
    ----------
    path : str
        The record file.
    size : int
        Its size in bytes.
    records : int
        Whole records.
    multipart : int
        Those of them that are stored in more than one part.
    payload_bytes : int
        Bytes in all whole records, without heads and padding.
    unescaped : int
        Whole records that contain an unescaped magic word.
    first_unescaped : int or None
        Byte offset of the first of them.
    lost_bytes : int
        Bytes that belong to no whole record.
    index_path : str or None
        The index that was compared.
    index_lines : int or None
        Lines in it.
    checksums : int or None
        Records that were compared with their checksums.
    images : int or None
        Images that were decoded without a warning; only ``recordio check --decode`` counts them.
    problems : list of Problem
        Empty if none was found.
    """

    path: str
    size: int = 0
    records: int = 0
    multipart: int = 0
    payload_bytes: int = 0
    unescaped: int = 0
    first_unescaped: int | None = None
    lost_bytes: int = 0
    index_path: str | None = None
    index_lines: int | None = None
    checksums: int | None = None
    images: int | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if no problem was found."""
        return not self.problems

    @property
    def note(self) -> str:
        """Remark on whole records with unescaped magic words; empty if there are none."""
        if not self.unescaped:
            return ""
        return (
            f"{self.unescaped} whole records hold a magic word that is not escaped, the first at"
            f" offset {self.first_unescaped}. SageMaker's writer leaves it so; MXNet's does not:"
            " in a file of its making the length of such a record is wrong"
        )

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {self.records} records ({self.multipart} in several parts),"
            f" {self.size} bytes, {self.lost_bytes} of them lost"
        ]
        if self.note:
            lines.append(f"{self.path}: {self.note}")
        if self.index_lines is not None:
            lines.append(f"{self.index_path}: {self.index_lines} lines")
        if self.checksums is not None:
            lines.append(f"{checksums_path(self.path)}: {self.checksums} checksums")
        if self.images is not None:
            lines.append(f"{self.path}: {self.images} images decoded without a warning")
        contents = self.checksums is not None or self.images is not None
        sound = "no problems" if contents else "no problems; contents not verified"
        lines += [str(problem) for problem in self.problems] or [sound]
        return "\n".join(lines)


def verify(
    path: Name,
    index: Name | None = None,
    checksums: Name | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Read a whole record file and list everything that is wrong with it.

    Parameters
    ----------
    path : str or os.PathLike
        The record file.
    index : str or os.PathLike, optional
        Its ``.idx`` file, to be compared with it.
    checksums : str or os.PathLike, optional
        Its ``.crc`` file, to be compared with it.
    progress : callable, optional
        Called as ``progress(done, total)``, in bytes of the file; an exception from it ends the
        check.

    Returns
    -------
    Report
        One problem for each damaged stretch, up to the next whole record; with `checksums` one for
        each record that does not match its checksum.  An `index` that cannot be parsed or disagrees
        with the file is a problem, too.

    Raises
    ------
    ChecksumFileError
        If `checksums` cannot be used, or belongs to another record file.
    FileKindError
        If the file is no record file, but for instance an image or an archive.
    OSError
        If a file cannot be read.
    TruncatedRecordError
        If the file becomes shorter while it is read.

    Notes
    -----
    MXNet's writer and `RecordWriter` escape the magic word in payloads; others, such as that of
    SageMaker's protobuf records, do not.  A record that holds the word (aligned) is whole if its
    length leads to the head of another record or to the end of the file, and is counted as
    `Report.unescaped`.  Otherwise its length is wrong: it has swallowed the head of another record.
    A length that is too small shows as stray bytes after the record.  Other changes inside a
    payload are found with `checksums` only; the record format has none.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     _ = writer.write(b"whole"), writer.write(b"truncated")
    >>> _ = path.write_bytes(path.read_bytes()[:-4])
    >>> report = verify(path)
    >>> report.ok, report.records, report.problems[0].kind, report.problems[0].offset
    (False, 1, 'truncated_payload', 16)
    """
    report = Report(os.fsdecode(path), index_path=None if index is None else os.fsdecode(index))
    table = None if checksums is None else read_checksums(checksums)
    _survey(map_records(StoredFile(report.path)), report, table, progress)
    return report


def _survey(
    data: memoryview,
    report: Report,
    table: Checksums | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Offsets:
    """Fill in a report, and return the offsets of whole records."""
    parts = [np.empty(0, np.int64)]
    listed = _listed_offsets(report.index_path)
    numbered = None if isinstance(listed, IndexFileError) else listed
    for offsets, end in whole_records(data, report, table, numbered):
        parts.append(offsets)
        if progress is not None:
            progress(end, len(data))
    offsets = np.concatenate(parts)
    if isinstance(listed, IndexFileError):
        report.problems.append(Problem("index_text", str(listed)))
    elif listed is not None:
        _compare_index(report, listed, offsets if table is None else table.offsets)
    return offsets


def _listed_offsets(index: str | None) -> Offsets | IndexFileError | None:
    """Read the offsets of an index, or the error of one that cannot be parsed; None without one."""
    try:
        return None if index is None else read_index(index)[1]
    except IndexFileError as error:
        return error


def write_checksums(path: Name, index: Name | None = None) -> Report:
    """Check a whole record file, and write its checksums to ``PREFIX.crc``.

    Parameters
    ----------
    path : str or os.PathLike
        The record file.
    index : str or os.PathLike, optional
        Its ``.idx`` file, to be checked as well.

    Returns
    -------
    Report
        Without problems.

    Raises
    ------
    CorruptRecordError
        If the file or its index is damaged; nothing is written then.
    ChecksumError
        If a record does not match existing checksums.  Remove the ``.crc`` file to write new ones
        all the same.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     _ = writer.write(b"whole")
    >>> write_checksums(path).records
    1
    >>> verify(path, checksums=path.with_suffix(".crc")).checksums
    1
    """
    report = Report(os.fsdecode(path), index_path=None if index is None else os.fsdecode(index))
    target = checksums_path(report.path)
    data = map_records(StoredFile(report.path))
    offsets = _survey(data, report)
    if not report.ok:
        problem = report.problems[0]
        raise CorruptRecordError(
            f"no checksums are made of a damaged file: {problem.reason}",
            path=report.path,
            offset=problem.offset,
            record=problem.record,
        )
    _check_replaceable(target, data, report.path)
    entries = checksum_entries(data, offsets)
    with AtomicOutput(target) as output:
        for piece in format_checksums(entries, len(data)):
            output.write(piece)
    return report


def _check_replaceable(target: str, data: memoryview, path: str) -> None:
    """Refuse to make damage official: the checksums that are there must hold, or be of no use."""
    if not is_checksums(target):
        return
    try:
        old = read_checksums(target)
    except ChecksumFileError:
        return
    report = Report(path)
    if old.size == len(data):
        _survey(data, report, old)
    if not report.ok:
        problem = report.problems[0]
        raise ChecksumError(
            f"{problem.reason}: {target} is not replaced; remove it to do so all the same",
            path=path,
            offset=problem.offset,
            record=problem.record,
        )


def whole_records(
    data: memoryview, report: Report, table: Checksums | None, listed: Offsets | None
) -> Iterator[tuple[Offsets, int]]:
    """Yield ``(offsets, end)`` of runs of adjacent whole records; note the damage between them."""
    report.size = len(data)
    if table is None:
        return _framed_records(data, report, listed)
    return _unchanged_records(data, report, table)


def _unchanged_records(
    data: memoryview, report: Report, table: Checksums
) -> Iterator[tuple[Offsets, int]]:
    """Yield the records that are as their checksums say, wherever they are."""
    keys: dict[int, int] | None = None
    offsets, first, kept = table.offsets, 0, 0
    ends = offsets + table.entries["length"]
    report.checksums = len(table)
    while first < len(table):
        comparison = compare(data, table, first)
        report.records += int(comparison.holds.sum())
        report.multipart += comparison.multipart
        report.payload_bytes += comparison.payload_bytes
        # Runs of records that hold: where the answer changes.
        edges = np.flatnonzero(np.diff(comparison.holds, prepend=False, append=False)) + first
        for begin, end in edges.reshape(-1, 2).tolist():
            kept += int(ends[end - 1] - offsets[begin])
            yield offsets[begin:end], int(ends[end - 1])
        for number in (np.flatnonzero(~comparison.holds) + first).tolist():
            keys = (keys_by_offset(report.index_path) or {}) if keys is None else keys
            _note_changed(report, number, int(offsets[number]), int(ends[number]), keys)
        first += len(comparison.holds)
    if report.size != table.size:
        if not report.records:
            table.check_size(report.path, report.size)
        _note_size(report, table.size)
    report.lost_bytes = report.size - kept


def _note_changed(report: Report, number: int, begin: int, end: int, keys: dict[int, int]) -> None:
    length = max(min(end, report.size) - begin, 0)
    reason = "the bytes of this record are not those that its checksum was made of"
    if length < end - begin:
        reason = "the file ends inside or before this record"
    report.problems.append(Problem("checksum", reason, begin, number, length, keys.get(begin)))


def _note_size(report: Report, size: int) -> None:
    kind, reason = "checksum_size", f"the file ends here, its checksums are of {size} bytes"
    if size < report.size:
        reason = f"what follows has no checksums: they are of {size} bytes"
    offset = min(size, report.size)
    report.problems.append(Problem(kind, reason, offset, length=report.size - offset))


def readable_lines(index: Name | None) -> Lines | None:
    """Read keys and offsets of an index; None without one that can be read."""
    try:
        return None if index is None else read_index(index)
    except IndexFileError:
        return None


def keys_by_offset(index: Name | None) -> dict[int, int] | None:
    """Read the key at each offset that an index lists; None without one that can be read."""
    lines = readable_lines(index)
    return None if lines is None else dict(zip(lines[1].tolist(), lines[0].tolist(), strict=True))


def _framed_records(
    data: memoryview, report: Report, listed: Offsets | None
) -> Iterator[tuple[Offsets, int]]:
    """Yield the records whose heads lead from one to the next."""
    for piece in walk(data, listed=listed, payloads=True):
        begin, number = int(piece.offsets[0]), int(piece.numbers[0])
        if piece.is_damage:
            length = piece.end - begin
            report.lost_bytes += length
            record = None if number < 0 else number
            report.problems.append(Problem(piece.kind, piece.reason, begin, record, length))
            continue
        run = piece.run
        report.records += len(run.offsets)
        report.multipart += run.multipart
        report.payload_bytes += run.payload_bytes
        if len(run.unescaped) and not report.unescaped:
            report.first_unescaped = int(run.unescaped[0])
        report.unescaped += len(run.unescaped)
        yield run.offsets, run.end


def _compare_index(report: Report, listed: Offsets, offsets: Offsets) -> None:
    report.index_lines = len(listed)
    at_record = np.isin(listed, offsets)
    wrong = np.flatnonzero(~at_record)
    if len(wrong):
        report.problems.append(
            Problem(
                "index_offset",
                f"{report.index_path}: {len(wrong)} lines, the first of them line {wrong[0] + 1},"
                " list offsets at which no whole record begins",
                int(listed[wrong[0]]),
            )
        )
    ordered = np.sort(listed)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        report.problems.append(
            Problem(
                "listed_twice",
                f"{report.index_path} lists {len(np.unique(twice))} records more than once, this "
                "one first",
                int(twice[0]),
            )
        )
    missing = np.flatnonzero(~np.isin(offsets, listed))
    if len(missing):
        report.problems.append(
            Problem(
                "not_listed",
                f"{report.index_path} does not list {len(missing)} records, this one first",
                int(offsets[missing[0]]),
            )
        )


def matched_keys(offsets: Offsets, listed: Lines | None, path: Name | None) -> Offsets:
    """Find keys for the records that stood at `offsets`, from the old index where it lists them."""
    if listed is None:
        return np.arange(len(offsets))
    keys, listed_offsets = listed
    order = np.argsort(listed_offsets, kind="stable")
    positions = np.searchsorted(listed_offsets, offsets, side="right", sorter=order) - 1
    if len(listed_offsets) == 0:
        return np.arange(len(offsets))
    lines = order[np.maximum(positions, 0)]
    is_listed = (positions >= 0) & (listed_offsets[lines] == offsets)
    first_free = max(int(keys.max()) + 1, 0)
    if is_listed.all():
        return keys[lines]
    if first_free + int(np.count_nonzero(~is_listed)) - 1 > LARGEST_KEY:
        raise IndexFileError(
            f"there are no keys behind {int(keys.max())} for records that are not listed; repair"
            " without the index",
            path=path,
        )
    return np.where(is_listed, keys[lines], first_free + np.cumsum(~is_listed) - 1)
