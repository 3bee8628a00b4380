"""The samples of a container as a scanned pack: tables for the operations over packs.

Nothing is read before a content is asked for; what cannot be used is a problem as damage is.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..bytes.files import StoredFile, with_mirrors
from ..containers.container import USUAL, Choice, chosen_kind
from ..errors import RecordIOError
from ..frames.check import Problem
from ..frames.head import HEAD
from ..header import HEADER
from .names import PackPaths, container_files, single_path
from .open_pack import OpenPack
from .scanned_pack import HEADER_WORDS, ROW, ScannedPack


def scan_pack(
    path: PackPaths, skip_errors: bool = False, everything: bool = False, choice: Choice = USUAL
) -> ScannedPack:
    """Scan a record file, or that part of the samples of a container, of one file or several."""
    files = container_files(path)
    if files:
        return ScannedContainer(single_path(path), with_mirrors(files, None), skip_errors, choice)
    chosen_kind(None, choice, single_path(path))
    return ScannedPack(single_path(path), skip_errors, everything)


def scan_field(source: OpenPack, name: str) -> ScannedPack:
    """Scan the pack of a field of another, or the field of a container; else a FieldError."""
    return scan_again(source.field(name), source.skip_errors)


def scan_again(pack: OpenPack, skip_errors: bool = True) -> ScannedPack:
    """Scan an open pack or field, with all its records."""
    if pack.container is not None:
        return ScannedContainer(pack.path, pack.shards, True, pack.choice)
    return ScannedPack(pack.file.name, skip_errors, everything=True)


class ScannedContainer(ScannedPack):
    """A container whose samples are records: those of the record file that its converter makes.

    Keys and ids are numbers of samples, and so a sample without usable content leaves a gap.
    `offsets` and `ends` are those of a record file, as far as sizes are known.
    """

    TABLES: tuple[str, ...] = ("keys", "numbers", "_heads")
    is_framed = False

    def __init__(
        self,
        path: str,
        files: Sequence[StoredFile],
        skip_errors: bool = False,
        choice: Choice = USUAL,
    ) -> None:
        # Opened whatever is damaged: that is a fault of a sample, and raised or left out below.
        OpenPack.__init__(self, path, shards=files, skip_errors=True, choice=choice)
        self.problems: list[Problem] = []
        self.identities: int | None = None
        self.numbers = self.keys = np.arange(len(self.reader))
        self.skip_errors = skip_errors
        #: Bytes of each content, -1 where they are not known yet, and why some cannot be used.
        self._content_sizes, faults = self.reader.content_sizes()
        if skip_errors and self.container is not None and self.container.rows is not None:
            faults |= self._unreadable(faults)
        self.versions: list[tuple[int, int] | None] = [self._version(file) for file in files]
        for row in sorted(faults):
            if not skip_errors:
                raise RecordIOError(faults[row], **self.reader.location(row))
            self.problem(row, "content", faults[row])
        if faults:
            self._keep(np.setdiff1d(self.numbers, list(faults)))

    def __len__(self) -> int:
        return len(self.numbers)

    def _unreadable(self, known_faults: dict[int, str]) -> dict[int, str]:
        """Read what only a library can, to know which contents it cannot."""
        faults = {}
        for row in range(len(self)):
            if row not in known_faults:
                try:
                    self._content_sizes[row] = len(self.reader.content(row))
                except RecordIOError as error:
                    faults[row] = error.reason
        return faults

    def _version(self, file: StoredFile) -> Any:
        if not self.is_folder:
            return file.version()
        samples = self.reader.samples
        names = (StoredFile(os.path.join(file.name, samples.name_of(row))) for row in self.numbers)
        digest = 0
        for name in names:
            digest = zlib.crc32(repr((name.name, name.version())).encode(), digest)
        return digest

    def _keep(self, chosen: np.ndarray) -> None:
        super()._keep(chosen)
        for table in ("offsets", "ends"):
            self.__dict__.pop(table, None)

    # -- where the records would be ---------------------------------------------------------------

    @cached_property
    def ends(self) -> np.ndarray:  # type: ignore[override]
        """Offset behind each record in a record file; of unknown sizes an average is taken."""
        sizes = self._content_sizes[self.numbers]
        unknown = sizes < 0
        if unknown.any():
            sizes = np.where(unknown, self.bytes // max(len(self.reader), 1), sizes)
        return np.cumsum(self._framed(sizes))

    @cached_property
    def offsets(self) -> np.ndarray:
        """Offset of each record in a record file."""
        return np.append(0, self.ends)[:-1]

    def _framed(self, sizes: np.ndarray) -> np.ndarray:
        whole = HEAD.itemsize + self.header_sizes(np.arange(len(self))) + sizes
        return -(-whole // 4) * 4

    @property
    def frame_sizes(self) -> np.ndarray:
        """Bytes that each record takes in a record file: int64."""
        self._measure()
        return self._framed(self._content_sizes[self.numbers])

    # -- what is in them --------------------------------------------------------------------------

    def said(self, problem: Problem) -> str:
        """Say where a problem is, and what it is."""
        assert problem.key is not None
        return f"{self.reader.location(problem.key)['path']}: {problem}"

    def record(self, row: int) -> memoryview:
        """Make the record of a sample."""
        record = self.reader[int(self.numbers[row])]
        self._content_sizes[self.numbers[row]] = len(record) - self.header_sizes(row)
        return record

    def copied(self, row: int) -> bytearray:
        """Copy a whole record, with its image header."""
        return bytearray(self.record(row))

    def contents(self, begin: int, end: int) -> Iterator[memoryview]:
        """Yield the contents of some records."""
        for row in range(begin, end):
            yield self.record(row)[int(self.header_sizes(row)) :]

    @property
    def image_sizes(self) -> np.ndarray:
        """Width and height of the image of every sample; see `OpenPack.image_sizes`."""
        return self.all_image_sizes[self.numbers]

    def _measure(self) -> None:
        """Read what is needed to know all sizes."""
        for number in self.numbers[self._content_sizes[self.numbers] < 0].tolist():
            self._content_sizes[number] = len(self.reader.content(number))

    @property
    def sizes(self) -> np.ndarray:
        """Bytes in each record, with its image header: int64, (records,)."""
        self._measure()
        rows = np.arange(len(self))
        return self._content_sizes[self.numbers] + self.header_sizes(rows)

    @cached_property
    def _heads(self) -> np.ndarray:
        samples, heads = self.reader.samples, np.zeros(len(self), ROW)
        counts = np.diff(samples.label_starts())[self.numbers]
        heads["headed"] = True
        heads["header"]["flag"] = np.where(counts > 1, counts, 0)
        heads["header"]["label"] = np.where(counts > 1, 0, samples.first_labels()[self.numbers])
        heads["header"]["id"] = self.numbers
        return heads

    def header_sizes(self, records: Any) -> np.ndarray:
        """Bytes before the content of some records, labels included: int64."""
        return HEADER.size + 4 * self.flags[records].astype(np.int64)

    def label_words(self, records: np.ndarray, positions: Any) -> np.ndarray:
        """Words of labels, by number of the record and position in it: uint32."""
        samples = self.reader.samples
        behind = np.where(self.flags[records] == 0, 0, positions - HEADER_WORDS)
        at = samples.label_starts()[self.numbers[records]] + behind
        labels = samples.labels[np.minimum(at, len(samples.labels) - 1)]
        return np.ascontiguousarray(labels, "<f4").view("<u4")
