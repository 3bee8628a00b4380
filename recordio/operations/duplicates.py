"""Records of a pack that hold the same content, or pictures that look the same.

Contents are compared by hashes, which are all that is kept of them.  Labels and ids do not matter.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from ..keywords.checks import integer
from ..keywords.functions import checked
from ..keywords.options import option, optional
from ..packs.scanned_container import scan_pack
from ..packs.scanned_pack import ScannedPack
from .content_table import ContentTable, first_of_same, first_of_similar
from .near import MOST_DISTANCE
from .options import Cancelled, Limits, Path, SkipErrors, Threads, Told
from .output import PackReport, write_packs
from .rewriting import check_target, need_records, output_path, plan_of


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Result of `dedup`.  Arrays have an entry for each duplicate, group after group.

    Attributes
    ----------
    path : str
        The record file.
    records : int
        Records in it that were compared, those without content too.
    groups : int
        Groups of records with the same content or similar images.
    exact, near : int
        Records with the content of an earlier record; other records with an image similar to an
        earlier one.
    conflicts : int
        Groups in which not all labels are the same.
    skipped : int
        Damaged records that were left out.
    kept, key : numpy.ndarray of int64
        Keys of the first record of the group, which stays, and of the duplicate.
    kept_number, number : numpy.ndarray of int64
        Numbers of both in the file, from 0, not counting damaged records and those that list
        identities.
    starts : numpy.ndarray of int64, (groups,)
        Where each group begins among the duplicates.
    same : numpy.ndarray of bool
        True if the duplicate has the content of the record that stays, False for a similar image.
    distance : numpy.ndarray of int64
        Number of bits, of 64, in which the hashes of the two images differ; -1 if images were not
        compared.
    contradicts : numpy.ndarray of bool
        True if the labels of the duplicate differ from those of the record that stays.
    label, kept_label : numpy.ndarray of float32
        First class label of the duplicate and of the record that stays; NaN without one.
    written : PackReport or None
        Report on the pack without duplicates, if one was written.
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
    kept_number: np.ndarray
    number: np.ndarray
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
        """Yield a line for each group: the key that stays, the others, and their differences."""
        for begin, end in itertools.pairwise([*self.starts.tolist(), len(self)]):
            descriptions = ", ".join(self._text_of(row) for row in range(begin, end))
            yield f"{self.kept[begin]}: {descriptions}"

    def _text_of(self, row: int) -> str:
        words = [] if self.same[row] else [f"distance {self.distance[row]}"]
        if self.contradicts[row]:
            label, kept = self.label[row], self.kept_label[row]
            words.append("other labels" if label == kept else f"label {label:g}, not {kept:g}")
        return f"{self.key[row]} ({', '.join(words)})" if words else f"{self.key[row]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, and ``duplicates`` as a list of objects, for JSON."""
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


Out = Annotated[
    str | os.PathLike[str] | None,
    option(
        kind="str or os.PathLike, optional",
        text="""Write the pack without duplicates, with an index.  **The first record of each group
        stays**, whatever its label.  By default nothing is written.""",
    ),
]
Near = Annotated[
    int | None,
    option(
        kind="int, optional",
        text="""Also find similar images: those whose perceptual hashes (64 bits of a cosine
        transform) differ in at most this number of bits, 0 to 16. Images that are similar to a
        third one are in one group, so the last of a group may differ more from the first. Up to 4,
        hardly any two different photographs are similar; from 10 on many are, and large packs take
        minutes.""",
        check=optional(partial(integer, low=0, high=MOST_DISTANCE)),
    ),
]


@checked
def dedup(
    path: Path,
    out: Out = None,
    near: Near = None,
    *,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    progress: Told = None,
    cancelled: Cancelled = lambda: False,
    **limits: Unpack[Limits],
) -> Duplicates:
    """Find the duplicate records of a pack, and optionally write the pack without them.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    Duplicates

    Raises
    ------
    RecordIOError
        If a record or the index is damaged, the pack is missing, or `out` is the pack itself.
    ImageDecodeError
        With `near`, if an image cannot be decoded.
    EmptyRecordFileError
        With `out`, if the pack has no record.
    ValueError
        If `near`, `threads` or a limit is out of range.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    The content after the image header is compared by a hash (128 bits of BLAKE2b).  Two records
    with the same content and other labels are duplicates whose labels contradict each other
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
    >>> duplicates = dedup(path, f"{path[:-4]}-unique")
    >>> duplicates.exact, duplicates.conflicts, list(duplicates.lines())
    (1, 1, ['0: 2 (label 1, not 0)'])
    >>> len(RecordReader(duplicates.written.outputs[0].path))
    2
    """
    with scan_pack(path, skip_errors) as pack:
        target = None if out is None else output_path(out)
        if target is not None:
            check_target(pack, target)
            need_records(pack)
        table = ContentTable(pack, near is not None, **limits)
        table.find(threads, progress, cancelled)
        twins = np.arange(len(pack))
        compared = np.flatnonzero(~table.alone)
        twins[compared] = first_of_same(table.contents[compared], compared)
        first = twins
        if near is not None:
            first = first_of_similar(table.pictures, table.has_picture, twins, near, cancelled)
        repeats, kept = _in_groups(first)
        rows = table.rows(repeats), table.rows(kept)
        duplicates = _duplicates_of(pack, *rows, twins[repeats])
        if target is None:
            return duplicates
        stay = np.flatnonzero((first == np.arange(len(first))) & ~table.damaged)
        plan = plan_of(pack, target, stay)
        report = write_packs([pack], [plan], progress=progress, cancelled=cancelled)
        return replace(duplicates, written=report)


def _duplicates_of(
    pack: ScannedPack, repeats: np.ndarray, kept: np.ndarray, twins: np.ndarray
) -> Duplicates:
    """Describe duplicates by `ROW`s of each and of what stays, in groups.

    `twins` has for each the first record with the same content, which may be itself.
    """
    looked = repeats["has_picture"]
    differing = np.bitwise_count(repeats["picture"] ^ kept["picture"]).astype(np.int64)
    contradicts = repeats["labels"] != kept["labels"]
    exact = int((twins < repeats["number"]).sum())
    starts = np.flatnonzero(np.diff(kept["number"], prepend=-1))
    return Duplicates(
        pack.path,
        len(pack),
        groups=len(starts),
        exact=exact,
        near=len(repeats) - exact,
        conflicts=len(np.unique(kept["number"][contradicts])),
        skipped=len(pack.problems),
        kept=kept["key"],
        key=repeats["key"],
        kept_number=kept["number"],
        number=repeats["number"],
        starts=starts,
        same=twins == kept["number"],
        distance=np.where(looked, differing, -1),
        contradicts=contradicts,
        label=repeats["label"],
        kept_label=kept["label"],
    )


def _in_groups(first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the duplicates, group after group, and what stays for each; `first` has all records."""
    repeats = np.flatnonzero(first < np.arange(len(first)))
    repeats = repeats[np.argsort(first[repeats], kind="stable")]
    return repeats, first[repeats]
