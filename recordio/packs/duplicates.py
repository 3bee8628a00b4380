"""Records of a pack that hold the same content, or pictures that look the same.

Contents are compared by hashes, which are all that is kept of them.  Labels and ids do not matter.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..content import IMAGE_KINDS, kind_of
from ..errors import ImageDecodeError
from ..frames.check import Problem
from ..image_size import DEFAULT_MAX_PIXELS
from .changes import output_path
from .hashes import HASH_BYTES, hash_of
from .near import MOST_DISTANCE, groups_of, near_pairs
from .output import PackReport, write_packs
from .passes import label_bytes, pass_over
from .pictures import picture_hash
from .rewriting import check_target, need_records, plan_of
from .source import SourcePack

__all__ = ["Duplicates", "dedup"]


@dataclass(frozen=True, eq=False)
class Duplicates:
    """What `dedup` found.  Arrays have an entry for each duplicate, group after group.

    Attributes
    ----------
    path : str
        The record file.
    records : int
        Records in it that were compared, those without content too.
    groups : int
        Groups of records that are the same or look the same.
    exact, near : int
        Records whose content an earlier record of the file has; other records that look like an
        earlier one.
    conflicts : int
        Groups in which not all labels are the same.
    skipped : int
        Damaged records that were left out.
    kept, key : numpy.ndarray of int64
        Key of the first record of the group, which is the one that stays, and of the duplicate.
    starts : numpy.ndarray of int64, (groups,)
        Where each group begins among the duplicates.
    same : numpy.ndarray of bool
        Whether its content is that of the record that stays, and not only a picture like it.
    distance : numpy.ndarray of int64
        In how many of 64 bits the two pictures differ; -1 where pictures were not compared.
    contradicts : numpy.ndarray of bool
        Whether the labels of the duplicate are not those of the record that stays.
    label, kept_label : numpy.ndarray of float32
        First class label of both; NaN without one.
    written : PackReport or None
        The pack without duplicates, if one was written.
    """

    path: str
    records: int
    groups: int
    exact: int
    near: int
    conflicts: int
    skipped: int
    kept: np.ndarray
    key: np.ndarray
    starts: np.ndarray
    same: np.ndarray
    distance: np.ndarray
    contradicts: np.ndarray
    label: np.ndarray
    kept_label: np.ndarray
    written: PackReport | None = None

    def __len__(self) -> int:
        return len(self.key)

    def lines(self) -> Iterator[str]:
        """A line for each group: the key that stays, then the others, and how they differ."""
        for begin, end in itertools.pairwise([*self.starts.tolist(), len(self)]):
            others = ", ".join(self._said(row) for row in range(begin, end))
            yield f"{self.kept[begin]}: {others}"

    def _said(self, row: int) -> str:
        words = [] if self.same[row] else [f"distance {self.distance[row]}"]
        if self.contradicts[row]:
            label, kept = self.label[row], self.kept_label[row]
            words.append("other labels" if label == kept else f"label {label:g}, not {kept:g}")
        return f"{self.key[row]} ({', '.join(words)})" if words else f"{self.key[row]}"

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON; ``duplicates`` is a list with an object for each."""
        names = ("path", "records", "groups", "exact", "near", "conflicts", "skipped")
        columns = ("kept", "key", "same", "distance", "contradicts", "label", "kept_label")
        rows = zip(*(getattr(self, name).tolist() for name in columns), strict=True)
        duplicates = [
            {
                name: value if not isinstance(value, float) or math.isfinite(value) else None
                for name, value in zip(columns, row, strict=True)
            }
            for row in rows
        ]
        return {**{name: getattr(self, name) for name in names}, "duplicates": duplicates}

    def __str__(self) -> str:
        near = f", {self.near} more that look like an earlier one" if self.near else ""
        text = (
            f"{self.path}: {self.records} records, {self.exact} with the content of an earlier one"
            f"{near}; groups: {self.groups}"
        )
        if self.conflicts:
            text += f", of which the labels contradict each other: {self.conflicts}"
        return text + (f"; damaged: {self.skipped}" if self.skipped else "")


def dedup(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    near: int | None = None,
    *,
    skip_errors: bool = False,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Duplicates:
    """Find the records of a pack that are there more than once, and write it without them if asked.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, with or without ``.rec``; ``PREFIX.idx`` is used if it is there.
    out : str or os.PathLike, optional
        Write the pack without duplicates, with an index.  Of each group **the first in the file
        stays**, whatever its label.  Nothing is written by default.
    near : int, optional
        Find pictures that look the same, too: those whose perceptual hashes (64 bits of a cosine
        transform) differ in at most so many bits, 0 to 16.  Groups join what is connected through
        others, so that the last of a group may differ more from the first.  Up to 4 hardly any two
        different photographs come so close; from 10 on many do, and large packs take minutes.
    skip_errors : bool
        Leave damaged records out, and with `near` images that cannot be decoded, instead of raising
        an error at the first.
    max_pixels : int
        With `near`: images with more are not decoded, and count as damaged.
    threads : int, optional
        How many hash and decode; by default one for every processor.
    progress : callable, optional
        ``progress(done, total)`` is told how many records were compared, and then how many were
        written.
    cancelled : callable, optional
        Asked now and then; when true, `KeyboardInterrupt` is raised and nothing is published.

    Returns
    -------
    Duplicates

    Raises
    ------
    RecordIOError
        For a damaged record or index, or if `out` is the pack itself.
    ImageDecodeError
        With `near`, for an image that cannot be decoded.
    ValueError
        If `near` is out of range.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Compared is what follows the image header, byte by byte in effect (128 bits of BLAKE2b).  Two
    records with the same content and other labels are duplicates whose labels contradict each other
    (``conflicts``): look at them before you remove any.  Records without content, such as those
    that list identities, are never duplicates.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordReader, RecordWriter, pack
    >>> path = f"{tempfile.mkdtemp()}/a.rec"
    >>> with RecordWriter(path) as writer:
    ...     for label, text in ((0, b"one"), (0, b"two"), (1, b"one")):
    ...         _ = writer.write(pack(IRHeader(0, label, 0, 0), text))
    >>> found = dedup(path, f"{path[:-4]}-unique")
    >>> found.exact, found.conflicts, list(found.lines())
    (1, 1, ['0: 2 (label 1, not 0)'])
    >>> len(RecordReader(found.written.outputs[0].path))
    2
    """
    if near is not None and not 0 <= near <= MOST_DISTANCE:
        raise ValueError(f"near={near}: expected 0 to {MOST_DISTANCE} bits")
    with SourcePack(path, skip_errors) as pack:
        target = None if out is None else output_path(out)
        if target is not None:
            check_target(pack, target)
            need_records(pack)
        hashes = _Hashes(pack, near is not None, skip_errors, max_pixels)
        hashes.find(threads, progress, cancelled)
        first = twin = hashes.first_of_same()
        if near is not None:
            first = hashes.first_of_similar(twin, near, cancelled)
        found = _found(pack, hashes, first, twin)
        if target is None:
            return found
        rows = np.flatnonzero((first == np.arange(len(first))) & ~hashes.damaged)
        plan = plan_of(pack, target, rows)
        report = write_packs([pack], [plan], progress=progress, cancelled=cancelled)
        return replace(found, written=report)


class _Hashes:
    """Hashes of the contents of a pack, and of its pictures if these are compared.

    Attributes
    ----------
    contents : numpy.ndarray of uint64, (records, 2)
    empty, has_picture, damaged : numpy.ndarray of bool, (records,)
    pictures : numpy.ndarray of uint64, (records,)
    """

    def __init__(self, pack: SourcePack, looks: bool, skip_errors: bool, max_pixels: int) -> None:
        count = len(pack)
        self.pack, self.looks = pack, looks
        self.skip_errors, self.max_pixels = skip_errors, max_pixels
        self.contents = np.zeros((count, HASH_BYTES // 8), np.uint64)
        self.pictures = np.zeros(count if looks else 0, np.uint64)
        self.empty, self.has_picture, self.damaged = np.zeros((3, count), bool)

    def find(
        self,
        threads: int | None,
        progress: Callable[[int, int], object] | None,
        cancelled: Callable[[], bool],
    ) -> None:
        """Read all records."""

        def tell(done: int) -> None:
            if cancelled():
                raise KeyboardInterrupt
            if progress is not None:
                progress(done, len(self.pack))

        for first, found in pass_over(self.pack, self._look, threads, tell):
            rows = slice(first, first + len(found))
            self.contents[rows] = np.frombuffer(b"".join(found), "<u8").reshape(-1, 2)
        for number in np.flatnonzero(self.damaged).tolist():
            place = self.pack.place(number)
            reason = "the image cannot be decoded"
            problem = Problem(
                "image", reason, place["offset"], number, 0, int(self.pack.keys[number])
            )
            self.pack.problems.append(problem)

    def _look(self, number: int, content: memoryview) -> bytes:
        if not len(content):
            self.empty[number] = True
        elif self.looks and kind_of(content) in IMAGE_KINDS:
            try:
                self.pictures[number] = picture_hash(content, self.max_pixels)
                self.has_picture[number] = True
            except ImageDecodeError as error:
                if not self.skip_errors:
                    raise ImageDecodeError(error.reason, **self.pack.place(number)) from None
                self.damaged[number] = True
        return hash_of(content)

    def first_of_same(self) -> np.ndarray:
        """For each record the first with the same content."""
        order = np.lexsort(self.contents.T)  # stable
        hashes = self.contents[order]
        new = np.ones(len(order), bool)
        new[1:] = (hashes[1:] != hashes[:-1]).any(-1)
        first = np.arange(len(order))
        first[order] = order[new][np.cumsum(new) - 1]
        alone = self.empty | self.damaged
        first[alone] = np.flatnonzero(alone)
        return first

    def first_of_similar(
        self, first: np.ndarray, distance: int, cancelled: Callable[[], bool]
    ) -> np.ndarray:
        """The same with pictures that look alike; `first` is the first with the same content."""
        looked = np.flatnonzero(self.has_picture & (first == np.arange(len(first))))
        hashes, owners = np.unique(self.pictures[looked], return_inverse=True)
        leaders = np.full(len(hashes), len(first))
        np.minimum.at(leaders, owners, looked)

        def pairs() -> Iterator[np.ndarray]:
            for some in near_pairs(hashes, distance):
                if cancelled():
                    raise KeyboardInterrupt
                yield some

        groups = groups_of(len(hashes), pairs())
        least = np.full(len(hashes), len(first))
        np.minimum.at(least, groups, leaders)
        result = first.copy()
        result[looked] = least[groups[owners]]
        return result[first]


def _found(pack: SourcePack, hashes: _Hashes, first: np.ndarray, twin: np.ndarray) -> Duplicates:
    """What is told; `first` is what stays for each record, `twin` the first with its content."""
    numbers = np.arange(len(first))
    others = np.flatnonzero(first < numbers)
    others = others[np.argsort(first[others], kind="stable")]
    kept = first[others]
    starts = np.flatnonzero(np.diff(kept, prepend=-1))
    exact = int((twin < numbers).sum())
    distance = np.full(len(others), -1)
    if hashes.looks:
        looked = hashes.has_picture[others]
        differing = hashes.pictures[others[looked]] ^ hashes.pictures[kept[looked]]
        distance[looked] = np.bitwise_count(differing)
    labels = pack.labels.first_of(np.arange(len(pack)))
    contradicts = np.zeros(len(others), bool)
    for row, (other, one) in enumerate(zip(others.tolist(), kept.tolist(), strict=True)):
        contradicts[row] = label_bytes(pack, other) != label_bytes(pack, one)
    return Duplicates(
        pack.path,
        len(pack),
        groups=len(starts),
        exact=exact,
        near=len(others) - exact,
        conflicts=len(np.unique(kept[contradicts])),
        skipped=len(pack.problems),
        kept=pack.keys[kept],
        key=pack.keys[others],
        starts=starts,
        same=twin[others] == kept,
        distance=distance,
        contradicts=contradicts,
        label=labels[others],
        kept_label=labels[kept],
    )
