"""WebDataset's tar files: samples are found by the headers, and their contents read in place.

Archives are never unpacked, and names in them are only names.  Of a local file the headers and the
labels are read; of one on a server, ranges round them.
"""

from __future__ import annotations

import collections
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import LOST, is_lost, part_of
from ..bytes.remote.block_table import BLOCK
from ..bytes.remote.mirror import MOST_REQUEST, Mirror, blocks_of
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import LabelError, RecordIOError, TruncatedRecordError
from ..list_files import check_labels
from ..notes import Notes
from ..values import number
from .container import USUAL, Choice, Container
from .dali_index import take_index
from .labels import note_folders, note_numbers
from .objects import has_rows, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples
from .tar_members import TarScan
from .webdataset import (
    CONTENTS,
    FieldChoice,
    NoLabelError,
    PartChoice,
    WebSample,
    add_part,
    ending_fields,
)

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
#: A note on labels behind other files than the image that they belong to.
ORPHANS = (
    "samples have a label and no image; the files of a sample must follow one another in the "
    "archive, for example by `tar --sort=name`"
)
#: A note on links, which Python's tarfile would follow.
LINKS = (
    "links or devices in the archive are left out; `tar --dereference --hard-dereference` stores "
    "the files to which links lead"
)
#: A note on what `cat a.tar b.tar` makes.
REST = (
    "archive goes on behind its end, and nothing there is read, as by `tar` without "
    "--ignore-zeros: give archives that were put one after the other by themselves"
)
#: Bytes behind the end of an archive in which another is looked for.
MOST_REST = 1 << 20
#: A note on names such as 22.05.png, of which the rule of WebDataset makes one sample.
DOTTED = (
    "archive has names with dots before the ending; each of its images is a sample, where "
    "WebDataset takes the first dot for the end of the name"
)
#: Samples whose labels are fetched at once.
AT_ONCE = 4096


def scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Find the samples of a tar file, whose contents may be a field of each."""
    path = redacted_url(file.name)
    try:
        if file.first_bytes(6, settings).startswith(COMPRESSED):
            raise RecordIOError(
                "samples of a compressed archive cannot be used where they lie: unpack it, for "
                "example with `gunzip`, or convert it with `recordio from-webdataset`"
            )
        mirror = None if file.is_local else file.mirrored(settings)

        def tar_samples(last_dot: bool = False) -> ContainedSamples:
            try:
                return _TarFile(file, mirror, choice, last_dot).samples(settings)
            except _NumberedImagesError:
                return _TarFile(file, mirror, choice, last_dot, every=True).samples(settings)

        try:
            return tar_samples()
        except _DottedNamesError as error:
            samples = tar_samples(last_dot=True)
            samples.notes.add(DOTTED, error.reason)
            return samples
    except RecordIOError as error:
        raise error.at(path=path) from None


class _DottedNamesError(RecordIOError):
    """Raised when the first dot of names does not end the name of a sample."""


class _NumberedImagesError(RecordIOError):
    """Raised when samples were passed over in haste that have several images."""


class _TarFile:
    """A tar file while its samples are found."""

    def __init__(
        self,
        file: StoredFile,
        mirror: Mirror | None,
        choice: Choice,
        last_dot: bool = False,
        every: bool = False,
    ) -> None:
        self.file, self.mirror, self.last_dot = file, mirror, last_dot
        self.view = file.map() if mirror is None else mirror.view
        self.is_field = bool(choice.field)
        self.choice = PartChoice(
            choice.image_field, choice.label_field, choice.has_labels, choice.boxes
        )
        if self.is_field:
            self.choice = FieldChoice(choice.field)
        self.choice = replace(self.choice, several=choice.several)
        self.may_have_dots = not (choice.image_field or choice.label_field or last_dot)
        # An ending that no file has: every sample is looked at.
        every |= bool(replace(choice, several=False).changes)
        self.endings = ["/"] if every else sorted(CONTENTS)
        #: Samples that are not of the usual kind: where the content lies, and the rest; or why not.
        self.web_samples: dict[int, tuple[WebSample, int, int]] = {}
        self.faults: dict[int, str] = {}
        #: Those that lack nothing but a label, and how errors say so.
        self.bare: dict[int, tuple[WebSample, str]] = {}
        self.left_out: collections.Counter[str] = collections.Counter()
        #: Keys of labels that stand without an image, and whether any sample had a label.
        self.orphans: set[str] = set()
        self.has_labels = False
        self.notes = Notes()
        self.numbers: list[str] = []

    def samples(self, settings: RemoteSettings | None) -> ContainedSamples:
        """Find all samples: by an index that lies beside the file, or from header to header."""
        reason, scan = None, self._scan()
        if not self.last_dot and take_index(self.file, scan, self.view, self.mirror, settings):
            self._look_at(scan)
        else:
            scan = self._scan()
            reason = self._run(scan)
        if is_lost(self.view):
            raise TruncatedRecordError(LOST)
        if (
            self.choice.several
            and self.endings != ["/"]
            and any(map(_may_be_image, scan.left_out()))
        ):
            raise _NumberedImagesError("samples have several images")
        return self._tables(scan, reason)

    def _scan(self) -> TarScan:
        return TarScan(len(self.view), self.endings, MOST_CONTENT, self.last_dot)

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
            begin, needed = scan.next_range
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
        if self.may_have_dots and self.choice.has_dots(files):
            raise _DottedNamesError(f"{key}.{next(iter(files))}")
        try:
            sample = self.choice.sample(key, files)
        except NoLabelError as error:
            self._look_at_bare(row, key, parts, files, error.reason)
            return
        except RecordIOError as error:
            self.faults[row] = error.reason
            self._look_at_orphan(key, files)
            return
        self.has_labels |= bool(sample.labels)
        try:
            check_labels(sample.labels)
            offset, size = sample.content
            if self._holds_rows(self.choice.chosen(files), size):
                labels = labels_of_rows(part_of(self.view, offset, offset + size))
                sample = sample._replace(labels=labels or [])
        except LabelError as error:
            self.faults[row] = error.reason
            return
        self.web_samples[row] = (sample, *sample.content)
        self.left_out.update(sample.left_out)

    def _look_at_orphan(self, key: str, files: dict[str, Any]) -> None:
        """Note that labels are there, though their sample cannot be used."""
        with contextlib.suppress(NoLabelError):
            try:
                self.has_labels |= self.choice.has_labels and bool(self.choice.labels(files))
            except RecordIOError:
                self.has_labels = True  # which cannot be read
            if self.has_labels and not self.choice.chosen(files):
                self.orphans.add(key)

    def _look_at_bare(
        self, row: int, key: str, parts: Sequence[Any], files: dict[str, Any], reason: str
    ) -> None:
        choice = replace(self.choice, has_labels=False)
        self.has_labels |= any(ending.endswith(".cls") for ending in files)
        try:
            self.bare[row] = choice.sample(key, files), reason
        except RecordIOError as error:
            self.faults[row] = error.reason
            return
        if len(self.bare) == 1:
            self.numbers = list(self._numbers(parts))

    def _numbers(self, parts: Sequence[tuple[str, int, int, bool]]) -> Iterator[str]:
        """Name what of a sample without a label holds one number."""
        for ending, offset, size, _ in parts:
            if size > MOST_LABEL or ending.rpartition(".")[2] in CONTENTS:
                continue
            text = bytes(part_of(self.view, offset, offset + size))
            if number(text) is not None:
                yield ending
            elif ending.endswith("json"):
                with contextlib.suppress(ValueError, RecursionError, AttributeError):
                    for name, value in json.loads(text).items():
                        if number(value) is not None:
                            yield f"{ending}:{name}"

    def _settle_bare(self, count: int) -> None:
        """Give samples without label the label 0 if none of the file has one."""
        # All others had labels that were read without a look.
        self.has_labels |= len(self.bare) + len(self.faults) + len(self.web_samples) < count
        for row, (sample, reason) in self.bare.items():
            if not self.has_labels:
                self.web_samples[row] = (sample, *sample.content)
                self.left_out.update(sample.left_out)
                continue
            self.faults[row] = reason
        for key in sorted(self.orphans):
            self.notes.add(ORPHANS, key)
        if self.bare and not self.has_labels:
            note_numbers(self.notes, self.numbers, len(self.bare), "file, or json:NAME,")
            note_folders(self.notes, [sample.name for sample, _ in self.bare.values()])

    # -- tables ---------------------------------------------------------------------------------

    def _tables(self, scan: TarScan, reason: str | None) -> ContainedSamples:
        damage = {}
        offsets, sizes, labels, names, name_starts = scan.tables()
        starts = None
        self._settle_bare(len(offsets))
        if self.web_samples:
            for row, (sample, offset, size) in self.web_samples.items():
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
        if links := left_out["links or devices"]:
            self.notes.add(LINKS, count=links)
        if reason is None and self.mirror is None and self._goes_on(scan.position):
            self.notes.add(REST, redacted_url(self.file.name))
        samples = ContainedSamples(
            offsets, sizes, labels, starts, names, name_starts,
            faults={**self.faults, **damage}, left_out=_few(left_out), damage=damage,
            notes=self.notes, labelled=self._is_labelled(),
        )  # fmt: skip
        several = {row: s.images for row, (s, *_) in self.web_samples.items() if len(s.images) > 1}
        if several and not self.is_field:
            _set_images(samples, several)
        return samples

    def _goes_on(self, end: int) -> bool:
        """Tell whether anything but zeros lies behind the end marker."""
        rest = part_of(self.view, end, min(len(self.view), end + MOST_REST))
        return bool(np.frombuffer(rest, np.uint8).any())

    def _is_labelled(self) -> bool | None:
        """Tell whether samples have labels; None where that is not known, or not asked."""
        if not self.choice.has_labels or not (self.has_labels or self.bare):
            return None
        return self.has_labels

    def _names(self, names: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put the names of the samples that were looked at among the others."""
        lengths, pieces, at = np.diff(starts), [], 0
        for row, (sample, *_) in sorted(self.web_samples.items()):
            name = sample.name.encode("utf-8", "surrogateescape")
            pieces += [names[at : starts[row]].tobytes(), name]
            at, lengths[row] = starts[row], len(name)
        pieces.append(names[at:].tobytes())
        return np.frombuffer(b"".join(pieces), np.uint8), np.append(0, np.cumsum(lengths))

    def _all_labels(self, firsts: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Put the labels of samples with several among those that have one."""
        several = {row: s.labels for row, (s, *_) in self.web_samples.items() if len(s.labels) > 1}
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


def _may_be_image(kind: str) -> bool:
    """Tell whether a kind of files that was left out may be images with numbers."""
    stem, _, last = kind.rpartition(".")
    return kind == "others" or (last in CONTENTS and stem[-1:].isdecimal())


def _set_images(samples: ContainedSamples, several: dict[int, Sequence[Any]]) -> None:
    """Take the images of samples that have several; all others have one."""
    counts = np.ones(len(samples), np.int64)
    counts[list(several)] = [len(images) for images in several.values()]
    first = np.append(0, np.cumsum(counts))
    offsets, sizes = np.repeat(samples.offsets, counts), np.repeat(samples.sizes, counts)
    for row, images in several.items():
        own = slice(first[row], first[row + 1])
        offsets[own], sizes[own] = np.array(images, np.int64).T
    samples.set_images(counts, offsets, sizes)


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
    rules=4,
    chooses=frozenset(["field", "image_field", "label_field", "has_labels", "boxes", "several"]),
    pattern=re.compile(r"\.(tar(\.(gz|bz2|xz|lzma|zst|lz4|z))?|tgz|tbz2?|txz)$", re.IGNORECASE),
)
