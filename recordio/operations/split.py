"""One pack into several, by chance, by class or by list."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np

from ..errors import EmptyRecordFileError, LabelError, RecordIOError
from ..keywords.checks import boolean, choice
from ..keywords.functions import checked
from ..keywords.options import option
from ..packs.chosen import chosen_records
from ..packs.source import SourcePack
from .changes import output_path
from .options import Cancelled, Path, Seed, SkipErrors, Told
from .output import PackReport, write_packs
from .rewriting import plan_of

__all__ = ["class_by_class", "grouped_labels", "shuffled_by_share", "split"]

#: Multiples of it, taken modulo 1, are spread evenly however many there are.
GOLDEN_RATIO = (5**0.5 - 1) / 2


Outputs = Annotated[
    Mapping[Any, float | str | os.PathLike[str] | Iterable[int]],
    option(
        kind="mapping",
        text="""For each record file to write what it gets.  ``by="fraction"``: its share of the
        records.  ``by="class"``: its share of the classes; all records of a class go to the same
        file.  Shares lie between 0 and 1 and add up to 1.  ``by="list"``: the records themselves,
        as an iterable of keys, a text file with one key in each line, or a ``.lst`` file with
        ids.""",
    ),
]
By = Annotated[
    str,
    option(
        kind='{"fraction", "class", "list"}',
        text="""What divides them: fraction: records by chance; class: classes by chance, with all
        of their records; list: files with a key in each line, or .lst files with ids.""",
        check=partial(choice, allowed=("fraction", "class", "list")),
    ),
]
Stratified = Annotated[
    bool,
    option(
        kind="bool",
        text="""With fractions: each file gets its share of every class as well, rounded up or down.
        The class of a record is its first label, or that of its first object.""",
        check=boolean,
    ),
]


@checked
def split(
    path: Path,
    outputs: Outputs,
    seed: Seed = 0,
    by: By = "fraction",
    *,
    stratified: Stratified = False,
    skip_errors: SkipErrors = False,
    progress: Told = None,
    cancelled: Cancelled = lambda: False,
) -> PackReport:
    """Divide the records of a pack between new ones, in which they keep their order.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport
        Its `outputs` have the order of the mapping; `left_out` counts records that no list names.

    Raises
    ------
    ValueError
        If shares do not add up to 1, or options contradict each other.
    EmptyRecordFileError
        If a file would get no record, or no class.
    LabelError
        By class, if records have several labels or none.
    RecordIOError
        If the source is damaged, two lists name a record, or an unknown one is named.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys are numbered again in every file, ids and labels stay; so do the numbers of identities,
    which have no images where all of theirs went to another file.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, pack, split
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(pack(IRHeader(0, number % 2, number, 0), b"content"))
    >>> report = split(f"{folder}/a", {f"{folder}/train": 0.8, f"{folder}/val": 0.2}, seed=1)
    >>> [output.records for output in report.outputs]
    [8, 2]
    """
    if stratified and by != "fraction":
        raise ValueError(f"stratified=True needs by='fraction', not by={by!r}")
    if not outputs:
        raise ValueError("outputs is empty: give at least one record file")
    shares: list[Any] = list(outputs.values())
    if by != "list":
        check_shares(shares)
    with SourcePack(path, skip_errors) as source:
        if by == "list":
            parts = _listed(source, outputs)
        elif by == "class":
            parts = _by_class(source, shares, seed)
        else:
            labels = grouped_labels(source) if stratified else None
            parts = _cut(shuffled_by_share(len(source), seed, labels), shares)
        plans = [
            plan_of(source, output_path(out), np.sort(part))
            for out, part in zip(outputs, parts, strict=True)
        ]
        return write_packs([source], plans, progress=progress, cancelled=cancelled)


def check_shares(shares: list[Any]) -> None:
    """Raise ValueError unless they are shares of a whole."""
    for share in shares:
        if isinstance(share, (str, bool)) or not isinstance(share, (int, float, np.number)):
            raise ValueError(f"the share {share!r} is no number between 0 and 1")
        if not 0 < share <= 1:
            raise ValueError(f"the share {share} does not lie between 0 and 1")
    if abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"the shares add up to {sum(shares):g} instead of 1")


def shuffled_by_share(count: int, seed: int, labels: np.ndarray | None = None) -> np.ndarray:
    """Numbers of all records in a random order; with labels every stretch has its share of each.

    Parameters
    ----------
    count : int
        How many.
    seed : int
    labels : numpy.ndarray of int, (count,), optional
        Numbers of classes, from 0.
    """
    order = np.random.default_rng(seed).permutation(count)
    if labels is None:
        return order
    # The i-th of n records of a class stands at (i + start) / n of the way.  The start differs from
    # class to class, so that small classes do not all have their first record at the same place.
    grouped, within = class_by_class(order, labels)
    sizes = np.bincount(labels)
    start = (np.arange(len(sizes)) + 0.5) * GOLDEN_RATIO % 1
    place = (within + np.repeat(start, sizes)) / np.repeat(sizes, sizes)
    return grouped[np.argsort(place, kind="stable")]


def class_by_class(order: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same order class by class, and how many of its class stand before each record."""
    sizes = np.bincount(labels)
    within = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[np.argsort(labels[order], kind="stable")], within


def grouped_labels(source: SourcePack) -> np.ndarray:
    """The class of each record as a number from 0; records without label are a class together."""
    source.need_labels()
    labels = source.labels.first_of(np.arange(len(source)))
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def _cut(order: np.ndarray, shares: list[float]) -> list[np.ndarray]:
    ends = np.rint(np.cumsum(shares) / sum(shares) * len(order)).astype(np.int64)
    return np.split(order, ends[:-1])


def _by_class(source: SourcePack, shares: list[float], seed: int) -> list[np.ndarray]:
    """Records by class, classes by chance."""
    source.need_labels()
    if source.is_detection:
        raise LabelError(
            "its records have objects of several classes: it cannot be divided by class",
            path=source.path,
        )
    labels = source.labels.first_of(np.arange(len(source)))
    classes, numbers = np.unique(labels, return_inverse=True)
    chosen = _cut(np.random.default_rng(seed).permutation(len(classes)), shares)
    if not all(map(len, chosen)):
        raise EmptyRecordFileError(
            f"its {len(classes)} classes are too few for these shares: a file would get none",
            path=source.path,
        )
    return [np.flatnonzero(np.isin(numbers, part)) for part in chosen]


def _listed(source: SourcePack, outputs: Mapping[Any, Any]) -> list[np.ndarray]:
    owner = np.full(len(source), -1)
    parts = []
    for number, (out, keys) in enumerate(outputs.items()):
        if isinstance(keys, (int, float)):
            raise ValueError(f"by='list' needs keys or a file for {out}, not {keys!r}")
        part = chosen_records(source, keys)
        if len(twice := part[owner[part] >= 0]):
            other = list(outputs)[owner[twice[0]]]
            raise RecordIOError(
                f"two lists name it, for {other} and for {out}", **source.place(int(twice[0]))
            )
        owner[part] = number
        parts.append(part)
    return parts
