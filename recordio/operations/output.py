"""New packs from records of others: copied in a planned order, with labels and ids changed.

The plan says everything in advance, so a run that was killed goes on where it was.  How records
are copied is in `copying`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.storage import AtomicOutput, naming_output
from ..errors import EmptyRecordFileError, LabelError, RecordIOError
from ..frames.companions import FIELDS, INDEX, set_paths
from ..frames.frame import scan_offsets
from ..packs.field_files import check_left
from ..packs.identity_frames import face_keys, identity_frames
from ..packs.labels import LabelChange
from ..packs.names import pack_prefix
from ..packs.pack_writer import PackWriter
from ..packs.scanned_pack import ScannedPack
from .copying import Copier, Edit
from .field_copies import FieldCopies, common_fields, described_fields
from .journal import Journal
from .options import Progress

#: Bytes written between two notes in the journal.
STEP = 64 << 20


@dataclass(frozen=True)
class Plan:
    """The records of one new pack: for each the number of its source, and its number there.

    `companions` are files to write beside it, by their endings: ``.classes.txt`` for instance.
    """

    path: str
    packs: np.ndarray
    records: np.ndarray
    companions: Mapping[str, bytes] = field(default_factory=dict)
    #: Names of its fields, which `write_packs` fills in.
    fields: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """The path without ``.rec``."""
        return pack_prefix(self.path)

    @property
    def paths(self) -> list[str]:
        """All files that are written."""
        own = [self.prefix + end for end in (INDEX.ending, *self.companions)]
        return [self.path, *own, *set_paths(self.prefix, self.fields)]


@dataclass(frozen=True)
class Seal:
    """A file that says that packs are complete: it appears after all of them.

    It is removed before the first old pack is replaced, so it never speaks of others.
    ``content(packs, files)`` makes it of a `PackWritten` for each pack, and of a list of where the
    files of each are now, in the order of `Plan.paths`.
    """

    path: str
    content: Callable[[Sequence[PackWritten], Sequence[Sequence[str]]], bytes]


@dataclass(frozen=True)
class PackWritten:
    """One new pack.

    Attributes
    ----------
    path : str
        The record file.
    records : int
        Records in it, without those that list identities.
    bytes : int
        Size of the record file.
    identities : int
        Number of identities that it lists.
    people : int
        Number of those that have images in it.
    fields : tuple of str
        Names of its fields, which are beside it.
    """

    path: str
    records: int
    bytes: int
    identities: int = 0
    fields: tuple[str, ...] = ()
    people: int = 0


@dataclass(frozen=True)
class PackReport:
    """Result of a function that makes packs from packs.

    Attributes
    ----------
    outputs : tuple of PackWritten
        The new packs.
    skipped : int
        Damaged records, or stretches of them, of all sources that were left out.
    problems : tuple of str
        Descriptions of these, with file and position.
    left_out : int
        Whole records of the sources that are in no output.
    continued : int
        Records that an earlier, killed run had written.
    in_several : int
        Identities of a face-recognition pack that have images in more than one output.
    """

    outputs: tuple[PackWritten, ...]
    skipped: int = 0
    problems: tuple[str, ...] = ()
    left_out: int = 0
    continued: int = 0
    in_several: int = 0

    @property
    def records(self) -> int:
        """Records in all outputs."""
        return sum(output.records for output in self.outputs)

    @property
    def bytes(self) -> int:
        """Bytes in all outputs."""
        return sum(output.bytes for output in self.outputs)


def write_packs(
    sources: Sequence[ScannedPack],
    plans: Sequence[Plan],
    edits: Sequence[Edit] | None = None,
    *,
    identities: int | None = None,
    window: int | None = None,
    seal: Seal | None = None,
    fields: Sequence[str] | None = None,
    changes: Sequence[LabelChange | None] | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackReport:
    """Write new packs, all of them or none.

    The classes of boxes in fields are changed by the `changes` of each source, which the `edits`
    have for its own labels; None where what becomes of a label is not known.

    Keys are numbered from 0 in the order of the plan.  In a pack with identities they are numbered
    from 1, class by class, as its identity records need it, and the ids in the image headers are
    these keys, so that an index can be written again from them; the file has the order of the plan
    all the same.  The records of fields have the keys of theirs.  Identities are class labels, at
    least so many as `identities` says: 0 for ordinary packs, and by default as many as the source
    that lists most.

    A run that is killed leaves its unpublished files and a journal, all named ``*.partial``.  The
    same call, with unchanged sources, goes on with them; any other run for the same output removes
    them.  Errors in outputs are RecordIOError (a source, or twice the same), EmptyRecordFileError,
    and LabelError for a label that numbers no identity.

    >>> import tempfile
    >>> from recordio import RecordReader, RecordWriter
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for text in (b"one", b"two", b"three"):
    ...         _ = writer.write(text)
    >>> with ScannedPack(f"{folder}/a") as source:
    ...     plan = Plan(f"{folder}/b.rec", np.zeros(2, int), np.array([2, 0]))
    ...     write_packs([source], [plan]).records
    2
    >>> [bytes(record) for record in RecordReader(f"{folder}/b.rec", f"{folder}/b.idx")]
    [b'three', b'one']
    """
    edits = [Edit()] * len(sources) if edits is None else edits
    names = common_fields(sources, fields)
    changes = [LabelChange()] * len(sources) if changes is None else changes
    described = described_fields(sources, names, changes)
    plans = [
        replace(plan, fields=names, companions={**plan.companions, **described}) for plan in plans
    ]
    _check_files(sources, plans)
    copies = [FieldCopies(name, sources, edits, changes, window) for name in names]
    for plan in plans:
        for copy in copies:
            copy.chosen(plan.packs, plan.records)  # before a long pass
    identities = _identities(sources, plans, edits, identities)
    keys = [_keys(plan, sources, edits, identities) for plan in plans]
    total = sum(len(plan.records) for plan in plans)
    done = continued = 0
    words = [word for copy in copies for word in copy.words()]
    journal = Journal(plans[0].path, _fingerprint(sources, plans, edits, identities, words))
    outputs: list[_Output] = []
    sealed: AtomicOutput | None = None
    try:
        for number, plan in enumerate(plans):
            outputs.append(_Output(number, plan, journal, keys[number], identities))
        done = continued = sum(output.done for output in outputs)
        copier = Copier(sources, edits, window)
        for output in outputs:
            for count in output.write(copier):
                done += count
                if progress is not None:
                    progress(done, total)
                if cancelled():
                    raise KeyboardInterrupt
            for _ in output.write_fields(copies):
                if cancelled():
                    raise KeyboardInterrupt
        if seal is not None:
            sealed = AtomicOutput(seal.path)
            sealed.write(
                seal.content(
                    [output.report() for output in outputs],
                    [output.writer.output.unpublished for output in outputs],
                )
            )
            with contextlib.suppress(FileNotFoundError):
                os.unlink(seal.path)  # the packs that it speaks of are about to be replaced
        for output in outputs:
            output.writer.output.commit()
        if sealed is not None:
            sealed.commit()
    except BaseException:
        for output in outputs:
            output.writer.discard()
        if sealed is not None:
            sealed.discard()
        raise
    finally:
        journal.remove()
        for copy in copies:
            copy.close()
    problems = [source.said(problem) for source in sources for problem in source.problems]
    problems += [problem for copy in copies for problem in copy.problems]
    written = tuple(output.report() for output in outputs)
    left_out = max(sum(map(len, sources)) - total, 0)
    parts = [output.ranges[:, 1] > output.ranges[:, 0] for output in outputs]
    in_several = int((np.sum(parts, axis=0) > 1).sum()) if identities else 0
    return PackReport(written, len(problems), tuple(problems), left_out, continued, in_several)


def _check_files(sources: Sequence[ScannedPack], plans: Sequence[Plan]) -> None:
    """Refuse an output that is a source or another output, or has no record."""
    inputs = [file.name for source in sources for file in source.files if file.is_local]
    taken = {os.path.realpath(path) for path in inputs}
    identity = {(status.st_dev, status.st_ino) for status in map(os.stat, inputs)}
    for plan in plans:
        if not len(plan.records):
            raise EmptyRecordFileError("no record would be in it", path=plan.path)
        check_left(StoredFile(plan.path), plan.fields, FIELDS.ending in plan.companions)
        for path in plan.paths:
            real = os.path.realpath(path)
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(path)
                if (status.st_dev, status.st_ino) in identity:
                    raise RecordIOError("a source would be overwritten", path=path)
            if real in taken:
                raise RecordIOError("two outputs, or a source and an output, are this", path=path)
            taken.add(real)


def _labels_of(plan: Plan, sources: Sequence[ScannedPack], edits: Sequence[Edit]) -> np.ndarray:
    """Find the first class label of each record of a plan as it becomes."""
    labels = np.empty(len(plan.records), np.float32)
    for number, (source, edit) in enumerate(zip(sources, edits, strict=True)):
        rows = plan.packs == number
        labels[rows] = edit.first_labels(source, plan.records[rows])
    return labels


def _identities(
    sources: Sequence[ScannedPack], plans: Sequence[Plan], edits: Sequence[Edit], least: int | None
) -> int:
    """Count the identities that the new packs list."""
    counts = [source.identities for source in sources if source.identities is not None]
    if least == 0 or not (counts or least):
        return 0
    labels = [_labels_of(plan, sources, edits).max() for plan in plans]
    largest = max(filter(np.isfinite, labels), default=-1)
    return max(least or max(counts), int(largest) + 1)


def _keys(
    plan: Plan, sources: Sequence[ScannedPack], edits: Sequence[Edit], identities: int
) -> tuple[np.ndarray, np.ndarray]:
    """Number the records of a plan; find the key ranges of its identities."""
    if not identities:
        return np.arange(len(plan.records)), np.empty((0, 2), np.int64)
    labels = _labels_of(plan, sources, edits)
    with np.errstate(invalid="ignore"):
        wrong = ~((labels >= 0) & (labels < identities) & (labels == np.floor(labels)))
    if wrong.any():
        row = int(np.argmax(wrong))
        source, number = sources[int(plan.packs[row])], int(plan.records[row])
        raise LabelError(
            f"its label would be {labels[row]:g}, which numbers no identity: a face-recognition "
            "pack lists its images by their labels",
            **source.location(number),
        )
    try:
        return face_keys(labels.astype(np.int64), identities)
    except ValueError as error:
        raise RecordIOError(str(error), path=plan.path) from None


def _fingerprint(
    sources: Sequence[ScannedPack],
    plans: Sequence[Plan],
    edits: Sequence[Edit],
    identities: int,
    more: Sequence[object],
) -> str:
    """Say in one word what is made of what."""
    digest = hashlib.blake2b(digest_size=32)

    def add(*words: object) -> None:
        for word in words:
            if isinstance(word, np.ndarray):
                digest.update(np.ascontiguousarray(word).data)
            else:
                digest.update(f"{word!r}\n".encode("utf-8", "surrogateescape"))

    for source, edit in zip(sources, edits, strict=True):
        add(os.path.realpath(source.path), source.versions, len(source), edit.shift)
        add(source.offsets, source.ends, edit.labels, *(edit.vectors or ()))
    for plan in plans:
        ids = "ids are keys" if identities else "ids stay"
        add(os.path.realpath(plan.path), identities, ids, len(plan.records), dict(plan.companions))
        add(plan.packs.astype(np.int64), plan.records.astype(np.int64))
    add(*more)
    return digest.hexdigest()


class _Output:
    """One pack while it is written."""

    def __init__(
        self,
        number: int,
        plan: Plan,
        journal: Journal,
        keys: tuple[np.ndarray, np.ndarray],
        identities: int,
    ) -> None:
        self.plan, self.number, self.journal = plan, number, journal
        self.keys, self.ranges = keys
        self.identities = identities
        self.size = self.done = self.noted = 0
        self.offsets = np.empty(0, np.int64)  # where records of a killed run begin
        companions = {plan.prefix + end: content for end, content in plan.companions.items()}
        ways: Any = {"companions": companions, "believed": True, "go_on": self._kept_bytes}
        with naming_output(plan.path):
            self.writer = PackWriter(plan.path, plan.prefix + INDEX.ending, plan.fields, **ways)
        before, rest = [0] * bool(identities), np.arange(identities) + len(self.keys) + 1
        #: Keys of all records in the file, those that list identities, too.
        self.all_keys = np.concatenate([before, self.keys, rest]).astype(np.int64)
        self.writer.go_on_with(self.all_keys[: len(self.offsets)], self.offsets, self.noted)

    def _kept_bytes(self, path: str) -> int:
        """Return the bytes to keep of those of a killed run; take note of the records in them."""
        size = self.journal.size_of(self.number, path)
        try:
            offsets = scan_offsets(StoredFile(path).map()[:size]) if size else self.offsets
        except RecordIOError:  # it is not what was written
            return 0
        before = int(bool(self.identities))
        if size and before <= len(offsets) <= len(self.plan.records) + before:
            self.offsets, self.noted = offsets, size
            self.done = len(offsets) - before
            return size
        return 0

    def write(self, copier: Copier) -> Iterator[int]:
        """Write what is missing; yield the number of records in each block."""
        plan = self.plan
        with naming_output(plan.path):
            if self.identities:
                first, rest = identity_frames(self.ranges, len(plan.records))
            if self.identities and not self.noted:
                self.writer.write_frames(first, [len(first)], [0])
            ids = self.keys if self.identities else None
            keys = self.keys[self.done :]
            for frames, lengths in copier.blocks(plan.packs, plan.records, self.done, ids):
                self.writer.write_frames(frames, lengths, keys[: len(lengths)])
                keys = keys[len(lengths) :]
                if self.writer.tell() - self.noted >= STEP:
                    self._note()
                yield len(lengths)
            self._note()  # the identities are written again in any case
            if self.identities:
                lengths = np.full(self.identities, len(rest) // self.identities)
                self.writer.write_frames(rest, lengths, self.all_keys[-self.identities :])
            self.size = self.writer.tell()

    def _note(self) -> None:
        self.noted = self.writer.tell()
        self.journal.note(self.number, self.writer.output, self.noted)

    def write_fields(self, copies: Sequence[FieldCopies]) -> Iterator[None]:
        """Write the fields of its records, block by block; those of a killed run are made anew."""
        plan, is_faces = self.plan, bool(self.identities)
        with naming_output(plan.path):
            for copy in copies:
                writer = self.writer.fields[copy.name]
                yield from copy.write(plan.packs, plan.records, self.keys, writer, is_faces)
            self.writer.finish()

    def report(self) -> PackWritten:
        plan = self.plan
        people = int((self.ranges[:, 1] > self.ranges[:, 0]).sum())
        return PackWritten(
            plan.path, len(plan.records), self.size, self.identities, plan.fields, people
        )
