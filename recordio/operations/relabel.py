"""A pack with other labels."""

from __future__ import annotations

import os
from array import array
from typing import Annotated, Any

import numpy as np

from ..errors import LabelError, RecordIOError
from ..keywords.functions import checked
from ..keywords.options import option
from ..lists import is_list, read_entries
from ..packs.source import SourcePack
from .changes import class_files, label_edits, output_path
from .copying import Edit, Vectors
from .options import Cancelled, Out, Path, SkipErrors, Told
from .output import PackReport, Plan, write_packs

__all__ = ["relabel"]


Labels = Annotated[
    Any,
    option(
        kind='mapping, array_like, callable, "dense", path or None',
        text="""What each class label becomes, as a mapping or as an array with one number for each
        label from 0 on; or a function that is called once, with the array of the different labels,
        and returns as many numbers.  ``"dense"`` numbers the different labels from 0 on, ascending.
        The path of a ``.lst`` file: each record has the labels of the line with its id, one or
        many.  None: -1.""",
    ),
]


@checked
def relabel(
    path: Path,
    out: Out,
    labels: Labels,
    *,
    skip_errors: SkipErrors = False,
    progress: Told = None,
    cancelled: Cancelled = lambda: False,
) -> PackReport:
    """Copy a pack with other labels.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport

    Raises
    ------
    LabelError
        If nothing is said about a label, or a list has no line for the id of a record.
    ValueError
        If labels are not what they can be.
    RecordIOError
        If the source is damaged, or a line of the list is not one or has the id of another.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Class labels are the first label of each record, or the ids of its objects; the other labels
    of a record stay, except where a list replaces all of them.  Identities of a face-recognition
    pack are those of the new labels.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordReader, RecordWriter, pack, relabel, unpack
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for label in (7, 3, 7):
    ...         _ = writer.write(pack(IRHeader(0, label, 0, 0), b"content"))
    >>> _ = relabel(f"{folder}/a", f"{folder}/b", "dense")
    >>> [unpack(record)[0].label for record in RecordReader(f"{folder}/b.rec")]
    [1.0, 0.0, 1.0]
    """
    if isinstance(labels, str) and labels != "dense" and not is_list(labels):
        raise ValueError(
            f"labels={labels!r}: expected 'dense', the path of a .lst file, a mapping, an array, a "
            "function or None"
        )
    with SourcePack(path, skip_errors) as source:
        identities = None
        if is_list(labels):
            source.need_labels()
            edit, classes = _listed(source, labels), {}
        else:
            asked = _dense if isinstance(labels, str) else labels
            values, changes, identities = label_edits([source], [asked], [None])
            edit, classes = Edit(values[0]), class_files([source], changes)
        rows = np.arange(len(source))
        plan = Plan(output_path(out), np.zeros(len(rows), np.int32), rows, classes)
        return write_packs(
            [source], [plan], [edit], identities=identities, progress=progress, cancelled=cancelled
        )


def _dense(labels: np.ndarray) -> np.ndarray:
    """The different labels, ascending, become 0, 1, 2, ..."""
    return np.arange(len(labels))


def _listed(source: SourcePack, path: str | os.PathLike[str]) -> Edit:
    """The labels that a list has for each id."""
    ids, lines, counts, values = array("Q"), array("q"), array("q"), array("f")
    for line, entry in read_entries(path):
        ids.append(entry.id)
        lines.append(line)
        counts.append(len(entry.labels))
        values.extend(entry.labels)
    listed = np.array(ids, np.uint64)
    order = np.argsort(listed, kind="stable")
    listed = listed[order]
    if len(twice := np.flatnonzero(listed[1:] == listed[:-1])):
        row = int(twice[0])
        raise RecordIOError(
            f"another line has the id {listed[row]}, too", path=path, line=lines[order[row + 1]]
        )
    rows = np.searchsorted(listed, source.ids)
    known = rows < len(listed)
    known[known] = listed[rows[known]] == source.ids[known]
    if not known.all():
        number = int(np.argmin(known))
        raise LabelError(
            f"{os.fsdecode(path)} has no line for its id",
            record_id=int(source.ids[number]),
            **source.place(number),
        )
    rows = order[rows]
    ends = np.cumsum(np.array(counts, np.int64))
    labels = np.array(values, np.float32)
    if not source.flags.any() and (np.array(counts) == 1).all():
        return Edit(labels[rows])  # one word of each record changes
    return Edit(vectors=Vectors(ends[rows] - np.array(counts, np.int64)[rows], ends[rows], labels))
