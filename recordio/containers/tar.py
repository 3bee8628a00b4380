"""WebDataset's tar files: samples are found by the headers, and their contents read in place.

Archives are never unpacked, and names in them are only names.  Of a local file the headers and the
labels are read; of one on a server, ranges round them.
"""

from __future__ import annotations

import collections
import contextlib
import re
from typing import Any

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import LOST, is_lost, part_of
from ..bytes.remote.block_table import BLOCK
from ..bytes.remote.mirror import MOST_REQUEST, Mirror, blocks_of
from ..bytes.remote.objects import shown
from ..bytes.remote.settings import RemoteSettings
from ..errors import LabelError, RecordIOError, TruncatedRecordError
from ..lists import check_labels
from .container import USUAL, Choice, Container
from .dali_index import take_index
from .objects import has_rows, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples
from .tar_members import TarScan
from .webdataset import CONTENTS, FieldChoice, PartChoice, WebSample, add_part, ending_fields

__all__ = ["TAR"]

#: No larger contents and label files; these are the limits of `recordio from-webdataset`.
MOST_CONTENT, MOST_LABEL = 1 << 28, 1 << 22
#: How compressed files begin: gzip, bzip2, xz, lzma, zstd and lz4.
COMPRESSED = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"\x5d\0\0",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
)
MOST_KINDS = 1000
#: Samples whose labels are fetched at once.
AT_ONCE = 4096


def scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Find the samples of a tar file, whose contents may be a field of each."""
    path = shown(file.name)
    try:
        if file.first_bytes(6, settings).startswith(COMPRESSED):
            raise RecordIOError(
                "samples of a compressed archive cannot be used where they lie: unpack it, for "
                "example with `gunzip`, or convert it with `recordio from-webdataset`"
            )
        mirror = None if file.is_local else file.mirrored(settings)
        return _TarFile(file, mirror, choice.field).samples(settings)
    except RecordIOError as error:
        raise error.at(path=path) from None


class _TarFile:
    """A tar file while its samples are found."""

    def __init__(self, file: StoredFile, mirror: Mirror | None, field: str = "") -> None:
        self.file, self.mirror = file, mirror
        self.view = file.map() if mirror is None else mirror.view
        self.choice = FieldChoice(field) if field else PartChoice()
        self.is_field = bool(field)
        # An ending that no file has: every sample is looked at.
        self.endings = ["/"] if field else sorted(CONTENTS)
        #: Samples that are not of the usual kind: where the content lies, and the rest; or why not.
        self.found: dict[int, tuple[WebSample, int, int]] = {}
        self.faults: dict[int, str] = {}
        #: Those that lack nothing but a label, and how errors say so.
        self.bare: dict[int, tuple[WebSample, str]] = {}
        self.left_out: collections.Counter[str] = collections.Counter()

    def samples(self, settings: RemoteSettings | None) -> ContainedSamples:
        """Find all samples: by an index that lies beside the file, or from header to header."""
        reason, scan = None, self._scan()
        if take_index(self.file, scan, self.view, self.mirror, settings):
            self._look_at(scan)
        else:
            scan = self._scan()
            reason = self._run(scan)
        if is_lost(self.view):
            raise TruncatedRecordError(LOST)
        return self._tables(scan, reason)

    def _scan(self) -> TarScan:
        return TarScan(len(self.view), self.endings, MOST_CONTENT)

    def _run(self, scan: TarScan) -> str | None:
        """Go from header to header; returns what ended that too early."""
        if self.mirror is None:
            reason = scan.run(self.view, len(self.view))
            if reason is not None:
                scan.give_up()
            self._look_at(scan)
            return reason
        # Where files are small, all of the object is read, by larger and larger ranges.  Where most
        # blocks hold no header, only the others are.
        most = max(BLOCK, min(MOST_REQUEST, self.mirror.folder.limit // 64))
        window, end, reason = BLOCK, 0, None
        while not scan.is_done:
            begin, needed = scan.wanted
            window = min(2 * window, most) if begin < end + BLOCK else BLOCK
            end = min(max(needed, begin // BLOCK * BLOCK + window), len(self.view))
            with self.mirror.pin_bytes(begin, end):
                if window == most:
                    self.mirror.prefetch(end, min(end + window, len(self.view)))
                reason = scan.run(self.view, end)
            if reason is not None:
                scan.give_up()
            self._look_at(scan)
        return reason

    # -- samples that are not of the usual kind --------------------------------------------------

    def _look_at(self, scan: TarScan) -> None:
        """Find out what those samples are that the scan cannot tell."""
        hard = scan.hard()
        for begin in range(0, len(hard), AT_ONCE):
            some = hard[begin : begin + AT_ONCE]
            with self._labels(some):
                for row, key, parts in some:
                    self._look_at_one(row, key, parts)

    def _labels(self, some: Any) -> contextlib.AbstractContextManager:
        """Have the label files of samples there."""
        if self.mirror is None:
            return contextlib.nullcontext()
        spans = [
            (offset, offset + max(size, 1))
            for _, _, parts in some
            for ending, offset, size, _ in parts
            if (self.choice.purpose(ending, ()) == "label" or self._holds_rows(ending, size))
            and size <= MOST_LABEL
        ]
        if not spans:
            return contextlib.nullcontext()
        return self.mirror.pin(blocks_of(*np.array(spans).T), urgent=True)

    def _holds_rows(self, ending: str, size: int) -> bool:
        """Tell whether a file may hold the boxes or points of a field."""
        is_own = self.is_field and self.choice.is_content(ending)
        return is_own and has_rows(ending) and size <= MOST_LABEL

    def _look_at_one(self, row: int, key: str, parts: list[tuple[str, int, int, bool]]) -> None:
        files: dict[str, Any] = {}
        passed_over: collections.Counter[str] = collections.Counter()
        for ending, offset, size, is_sparse in parts:
            ending = ending.lower()
            purpose = self.choice.purpose(ending, list(files))
            content: Any = None
            if purpose and is_sparse:
                content = RecordIOError(f"its .{ending} file has holes: it is a sparse member")
            elif purpose and size > (MOST_CONTENT if purpose == "content" else MOST_LABEL):
                content = RecordIOError(f"its .{ending} file has {size} bytes, which are too many")
            elif purpose == "content":
                content = offset, size
            elif purpose:
                content = bytes(part_of(self.view, offset, offset + size))
            add_part(files, ending, content, passed_over)
        self.left_out.update(passed_over)
        try:
            sample = self.choice.sample(key, files)
        except LabelError as error:
            self._look_at_bare(row, key, files, error.reason)
            return
        except RecordIOError as error:
            self.faults[row] = error.reason
            return
        try:
            check_labels(sample.labels)
            offset, size = sample.content
            if self._holds_rows(self.choice.chosen(files), size):
                labels = labels_of_rows(part_of(self.view, offset, offset + size))
                sample = sample._replace(labels=labels or [])
        except LabelError as error:
            self.faults[row] = error.reason
            return
        self.found[row] = (sample, *sample.content)
        self.left_out.update(sample.left_out)

    def _look_at_bare(self, row: int, key: str, files: dict[str, Any], reason: str) -> None:
        try:
            self.bare[row] = PartChoice(has_labels=False).sample(key, files), reason
        except RecordIOError as error:
            self.faults[row] = error.reason

    def _settle_bare(self, count: int) -> None:
        """Give samples without label the label 0 if none of the file has one."""
        has_none = len(self.bare) + len(self.faults) == count
        for row, (sample, reason) in self.bare.items():
            if has_none:
                self.found[row] = (sample, *sample.content)
                self.left_out.update(sample.left_out)
            else:
                self.faults[row] = reason

    # -- tables ---------------------------------------------------------------------------------

    def _tables(self, scan: TarScan, reason: str | None) -> ContainedSamples:
        damage = {}
        offsets, sizes, labels, names, name_starts = scan.tables()
        starts = None
        self._settle_bare(len(offsets))
        if self.found:
            for row, (sample, offset, size) in self.found.items():
                offsets[row], sizes[row] = offset, size
                labels[row] = sample.labels[0] if sample.labels else 0
            names, name_starts = self._names(names, name_starts)
            labels, starts = self._all_labels(labels)
        if reason is not None:
            damage[len(offsets)] = (
                f"damaged at offset {scan.position}, and nothing behind it can be found: {reason}"
            )
            offsets = np.append(offsets, scan.position + 512)
            sizes = np.append(sizes, NO_CONTENT)
            labels = np.append(labels, np.float32(0))
            name_starts = np.append(name_starts, name_starts[-1])
            if starts is not None:
                starts = np.append(starts, starts[-1] + 1)
        left_out = self.left_out + collections.Counter(scan.left_out())
        return ContainedSamples(
            offsets, sizes, labels, starts, names, name_starts,
            faults={**self.faults, **damage}, left_out=_few(left_out), damage=damage,
        )  # fmt: skip

    def _names(self, names: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put the names of the samples that were looked at among the others."""
        lengths, pieces, at = np.diff(starts), [], 0
        for row, (sample, *_) in sorted(self.found.items()):
            name = sample.name.encode("utf-8", "surrogateescape")
            pieces += [names[at : starts[row]].tobytes(), name]
            at, lengths[row] = starts[row], len(name)
        pieces.append(names[at:].tobytes())
        return np.frombuffer(b"".join(pieces), np.uint8), np.append(0, np.cumsum(lengths))

    def _all_labels(self, firsts: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Put the labels of samples with several among those that have one."""
        several = {row: s.labels for row, (s, *_) in self.found.items() if len(s.labels) > 1}
        if not several:
            return firsts, None
        counts = np.ones(len(firsts), np.int64)
        for row, labels in several.items():
            counts[row] = len(labels)
        starts = np.append(0, np.cumsum(counts))
        flat = np.zeros(starts[-1], np.float32)
        flat[starts[:-1]] = firsts
        for row, labels in several.items():
            flat[starts[row] : starts[row + 1]] = labels
        return flat, starts


def _few(counts: collections.Counter[str]) -> dict[str, int]:
    """Keep the counts of so many kinds, and join those of all others."""
    kept = dict(counts.most_common(MOST_KINDS))
    if rest := counts.total() - sum(kept.values()):
        kept["others"] = kept.get("others", 0) + rest
    return kept


def fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the fields that its samples have besides images and labels."""
    return ending_fields(samples.left_out)


TAR = Container(
    "a tar file",
    scan,
    fields=fields,
    rules=2,
    pattern=re.compile(r"\.(tar(\.(gz|bz2|xz|lzma|zst|lz4|z))?|tgz|tbz2?|txz)$", re.IGNORECASE),
)
