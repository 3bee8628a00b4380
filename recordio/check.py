"""Look for damage in record files, and save what is whole.

`verify` never writes; `repair` writes new files and leaves the damaged ones alone.  Neither looks
into the payload of a record for more than misplaced heads: an undecodable image is a whole record
here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from recordio.errors import IndexFileError
from recordio.frames import find_head, survey
from recordio.index import format_index, read_index
from recordio.mapping import check_kept, map_file
from recordio.storage import AtomicOutput

__all__ = ["Problem", "Report", "repair", "verify"]

LARGEST_KEY = 2**63 - 1


@dataclass(frozen=True)
class Problem:
    """One damaged stretch of a record file, or one disagreement with its index.

    Parameters
    ----------
    kind : str
        What it is: ``"bad_magic"``, ``"truncated_payload"``, ``"wrong_length"``,
        ``"index_offset"`` ...
    reason : str
        The same in words.
    offset : int or None
        Byte offset in the record file at which the damage begins.
    record : int or None
        Number of whole records before it.
    length : int
        Bytes that belong to no whole record because of it.

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

    def __str__(self) -> str:
        place = ", ".join(
            f"{name} {value}"
            for name, value in (("offset", self.offset), ("record", self.record))
            if value is not None
        )
        lost = f" ({self.length} bytes lost)" if self.length else ""
        return f"{place}: {self.reason}{lost}" if place else self.reason + lost


@dataclass
class Report:
    """What `verify` or `repair` found.

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
    lost_bytes : int
        Bytes that belong to no whole record.
    index_path : str or None
        The index that was compared.
    index_lines : int or None
        Lines in it.
    problems : list of Problem
        Empty if all is well.
    """

    path: str
    size: int = 0
    records: int = 0
    multipart: int = 0
    payload_bytes: int = 0
    lost_bytes: int = 0
    index_path: str | None = None
    index_lines: int | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {self.records} records ({self.multipart} in several parts),"
            f" {self.size} bytes, {self.lost_bytes} of them lost"
        ]
        if self.index_lines is not None:
            lines.append(f"{self.index_path}: {self.index_lines} lines")
        lines += [str(problem) for problem in self.problems] or ["no problems"]
        return "\n".join(lines)


def verify(path, index=None):
    """Read a whole record file and list everything that is wrong with it.

    Parameters
    ----------
    path : str or os.PathLike
        The record file.
    index : str or os.PathLike, optional
        Its ``.idx`` file, to be compared with it.

    Returns
    -------
    Report
        One problem for each damaged stretch, found by going on at the next place that holds a whole
        record.

    Raises
    ------
    OSError
        If a file cannot be read.
    TruncatedRecordError
        If the file becomes shorter while it is read.

    Notes
    -----
    A writer escapes the magic word in payloads, so a payload that holds it (aligned) has swallowed
    the head of another record: its length is wrong, and it does not count as whole.  A length that
    is too small shows as stray bytes behind the record.  Other changes inside a payload cannot be
    seen; the format has no checksums.

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
    found = [np.empty(0, np.int64)]
    found += (offsets for offsets, _ in _whole_records(map_file(report.path), report))
    if index is not None:
        _compare_index(report, np.concatenate(found))
    return report


def repair(path, out, index=None, out_index=None):
    """Copy every whole record of a damaged file to a new one, with a new index.

    Parameters
    ----------
    path : str or os.PathLike
        The damaged record file; it is left as it is.
    out : str or os.PathLike
        The record file to write or to replace; not `path`.
    index : str or os.PathLike, optional
        The index of `path`, if its keys are to be kept.  Records that it does not list get new keys
        behind the largest.
    out_index : str or os.PathLike, optional
        The index to write; by default `out` with the suffix ``.idx``.  Without `index` its keys are
        the positions in `out`.

    Returns
    -------
    Report
        About `path`: what was copied (`records`) and what was lost (`problems`).

    Raises
    ------
    IndexFileError
        If `index` cannot be parsed: repair without it then.
    ValueError
        If an output is one of the inputs.
    TruncatedRecordError
        If the file becomes shorter while it is read.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> _ = path.write_bytes(b"damaged!" + recordio.encoder.encode(b"whole"))
    >>> report = repair(path, path.with_name("b.rec"))
    >>> report.records, report.lost_bytes
    (1, 8)
    >>> [bytes(record) for record in recordio.RecordReader(path.with_name("b.rec"))]
    [b'whole']
    """
    report = Report(os.fsdecode(path), index_path=None if index is None else os.fsdecode(index))
    out = os.fsdecode(out)
    out_index = os.path.splitext(out)[0] + ".idx" if out_index is None else os.fsdecode(out_index)
    inputs = [report.path] if index is None else [report.path, report.index_path]
    for target in (out, out_index):
        for source in inputs:
            if os.path.realpath(source) == os.path.realpath(target):
                raise ValueError(f"{source} would be overwritten: give another output")
    listed = None if index is None else read_index(report.index_path)
    view = map_file(report.path)
    old = [np.empty(0, np.int64)]
    new = [np.empty(0, np.int64)]
    written = 0
    with AtomicOutput(out, out_index) as output:
        for offsets, end in _whole_records(view, report):
            begin = int(offsets[0])
            old.append(offsets)
            new.append(offsets - begin + written)
            written += output.write(view[begin:end])
            check_kept(view[begin:end], path=report.path, offset=begin)
        keys = _carry_keys(np.concatenate(old), listed, index)
        for piece in format_index(keys, np.concatenate(new)):
            output.files[1].write(piece)
    return report


def _whole_records(data, report):
    """Yield ``(offsets, end)`` of runs of adjacent whole records; note the damage between them."""
    report.size = len(data)
    offset, damage = 0, None
    while True:
        run = survey(data, offset)
        if len(run.offsets):
            if damage is not None:
                _note(report, damage, int(run.offsets[0]))
                damage = None
            report.records += len(run.offsets)
            report.multipart += run.multipart
            report.payload_bytes += run.payload_bytes
            yield run.offsets, run.end
        if run.kind == "end":
            break
        offset = run.end
        if run.kind != "ok":
            # A stretch in which every plausible head leads nowhere is one damage, not many.
            damage = damage or run
            offset = find_head(data, run.end + 4)
            if offset == len(data):
                break
    if damage is not None:
        _note(report, damage, len(data))


def _note(report, run, resumed):
    kind, reason = run.kind, run.reason
    if resumed < report.size and kind.startswith("truncated"):
        kind, reason = "wrong_length", "a length that leads behind the end of the file"
    elif kind in ("bad_magic", "zeros") and report.records:
        reason += "; or the length of the record before is too small"
    report.lost_bytes += resumed - run.end
    report.problems.append(Problem(kind, reason, run.end, report.records, resumed - run.end))


def _compare_index(report, offsets):
    try:
        _, listed = read_index(report.index_path)
    except IndexFileError as error:
        report.problems.append(Problem("index_text", str(error)))
        return
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
    missing = np.flatnonzero(~np.isin(offsets, listed))
    if len(missing):
        report.problems.append(
            Problem(
                "not_listed",
                f"{report.index_path} does not list {len(missing)} records, this one first",
                int(offsets[missing[0]]),
                int(missing[0]),
            )
        )


def _carry_keys(offsets, listed, path):
    """Keys for the records that stood at `offsets`, from the old index where it lists them."""
    if listed is None:
        return np.arange(len(offsets))
    keys, places = listed
    order = np.argsort(places, kind="stable")
    found = np.searchsorted(places, offsets, side="right", sorter=order) - 1
    if len(places) == 0:
        return np.arange(len(offsets))
    lines = order[np.maximum(found, 0)]
    known = (found >= 0) & (places[lines] == offsets)
    first_free = max(int(keys.max()) + 1, 0)
    if known.all():
        return keys[lines]
    if first_free + int(np.count_nonzero(~known)) - 1 > LARGEST_KEY:
        raise IndexFileError(
            f"there are no keys behind {int(keys.max())} for records that are not listed; repair"
            " without the index",
            path=path,
        )
    return np.where(known, keys[lines], first_free + np.cumsum(~known) - 1)
