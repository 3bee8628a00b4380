"""Look for damage in a record file with its index, or in a container."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..boxes import LEAST_HEADER
from ..errors import RecordIOError
from ..frames.check import Problem, Report, keys_by_offset, verify
from ..frames.reader import RecordReader
from ..header import HEADER, unpack
from .field_check import field_problems
from .open_pack import OpenPack
from .scanned_container import scan_again
from .scanned_pack import whole_records


def check_pack(
    pack: OpenPack,
    checksums: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """List everything that is wrong with a record file, as `verify` does, or with a container.

    If nothing is, the keys of a face-recognition pack are looked at, the labels of objects, and the
    fields of a pack.
    The contents of a container have to be there; those that only a library can read are read.
    """
    report = _checked(pack, checksums, progress)
    if report.ok:
        report.problems += [*_face_problems(pack), *_label_problems(pack), *field_problems(pack)]
    return report


def _label_problems(pack: OpenPack) -> list[Problem]:
    """Find objects that cannot be right in the labels of a detection pack."""
    if not len(pack):
        return []
    with contextlib.suppress(RecordIOError):
        if np.atleast_1d(unpack(pack.record(0))[0].label).size < LEAST_HEADER:
            return []  # most packs, whose labels are not all read
    with scan_again(pack) as scanned:
        scanned.problems.clear()  # found by others
        if scanned.is_detection:
            scanned.note_faulty_objects()
        return scanned.problems


def _face_problems(pack: OpenPack) -> list[Problem]:
    """Find records of a face-recognition pack that no identity can list, and nobody would read."""
    faces = None
    with contextlib.suppress(RecordIOError):  # those who read it say so
        faces = pack.faces
    if faces is None:
        return []
    lost = pack.all_keys[pack.all_keys >= faces.keys.stop]
    if not len(lost):
        return []
    return [
        Problem(
            "identities",
            f"{len(lost)} records have keys from {lost.min()} on, behind those of the records that "
            f"list identities, {faces.keys.start} to {faces.keys.stop - 1}: they are read neither "
            "as images nor as identities, so the index has other keys than the pack was made with",
            key=int(lost.min()),
        )
    ]


def _checked(
    pack: OpenPack, checksums: str | None, progress: Callable[[int, int], object] | None
) -> Report:
    if pack.container is None:
        index = None if pack.index is None else pack.index.name
        return verify(pack.file.name, index, checksums, progress)
    sizes, faults = pack.reader.content_sizes()
    for row in np.flatnonzero(sizes < 0).tolist():
        if row in faults:
            continue
        try:
            sizes[row] = len(pack.reader.content(row))
        except RecordIOError as error:
            faults[row] = error.reason
        if progress is not None:
            progress(row + 1, len(sizes))
    whole = np.ones(len(sizes), bool)
    whole[list(faults)] = False
    counts = np.diff(pack.reader.samples.label_starts())
    headers = HEADER.size + 4 * np.where(counts > 1, counts, 0)
    problems = [_problem(pack, row, "content", faults[row]) for row in sorted(faults)]
    return Report(
        pack.path,
        size=int(sizes[whole].sum()) if pack.is_folder else pack.bytes,
        records=int(whole.sum()),
        payload_bytes=int((sizes + headers)[whole].sum()),
        problems=problems,
    )


def _problem(pack: OpenPack, row: int, kind: str, reason: str) -> Problem:
    """Describe what is wrong with a sample; of several files its own is named."""
    where = pack.reader.location(row)
    if where["path"] != pack.path:
        reason = f"{where['path']}: {reason}"
    return Problem(kind, reason, where.get("offset"), where["record"], key=row)


class SoundRecords:
    """The records of a pack in which a report found no damage, in its order."""

    def __init__(self, pack: OpenPack, report: Report) -> None:
        self.pack = pack
        self._reader: Any
        if pack.container is not None:
            self._reader = pack.reader
            bad = [problem.key for problem in report.problems if problem.key is not None]
            rows = np.setdiff1d(np.arange(len(pack.reader)), bad)
            self.numbers: np.ndarray
            self.offsets: np.ndarray
            self.offsets = self.numbers = rows
            self._keys: dict[int, int] | None = None
            return
        self._reader = RecordReader(pack.file)
        (self.offsets, _, self.numbers), _ = whole_records(pack.file.map(), report.index_path)
        self._keys = keys_by_offset(report.index_path)

    def __len__(self) -> int:
        return len(self.offsets)

    def key(self, row: int) -> int | None:
        """Return the key of a record; None where no index lists it."""
        if self.pack.container is not None:
            return int(self.numbers[row])
        return None if self._keys is None else self._keys.get(int(self.offsets[row]))

    def read(self, row: int, copy: bool = False) -> Any:
        """Read a record."""
        if self.pack.container is not None:
            return self._reader[int(self.numbers[row])]
        record, _ = self._reader.read_at(int(self.offsets[row]), int(self.numbers[row]), copy=copy)
        assert record is not None
        return record

    def problem(self, row: int, kind: str, reason: str) -> Problem:
        """Describe what is wrong with the content of a record."""
        if self.pack.container is not None:
            return _problem(self.pack, int(self.numbers[row]), kind, reason)
        number = int(self.numbers[row])
        listed = None if number < 0 else number
        return Problem(kind, reason, int(self.offsets[row]), listed, key=self.key(row))

    def __enter__(self) -> SoundRecords:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.pack.container is None:
            self._reader.close()
