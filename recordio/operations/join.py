"""Several packs into one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from numbers import Number
from typing import Annotated, Any, Unpack

import numpy as np

from ..keywords.functions import checked
from ..keywords.options import option
from ..packs.manifest import named_manifest
from ..packs.scanned_container import scan_pack
from .copying import Edit
from .options import RunOptions, SkipErrors
from .output import PackReport, Plan, write_packs
from .rewriting import class_files, id_shifts, label_edits, output_path

Sources = Annotated[
    Sequence[str | os.PathLike[str]],
    option(
        kind="sequence of path",
        text="""Record files, with or without ``.rec``, or containers. A manifest of shards
        (``.json``) stands for the whole pack; labels are then kept.""",
    ),
]
Out = Annotated[
    str | os.PathLike[str],
    option(
        kind="path",
        text="""The record file to write, with its index and, where names of classes are known,
        ``PREFIX.classes.txt``; existing files are replaced.""",
    ),
]
Labels = Annotated[
    Any,
    option(
        kind='{"keep", "append", "names"}, mapping, array_like, callable or None',
        text="""New class labels, for all packs or, as a list, for each pack: "keep" leaves them
        unchanged; "append" numbers them after the classes of the packs before; "names" gives them
        the labels of the same names in ``PREFIX.classes.txt`` of the packs before, and new names
        follow; a mapping, whose keys are labels or, as texts, names of classes, or an array with
        one number for each label from 0 on, gives the new label of each; a function is called
        once, with the array of the different labels, and returns as many numbers. None makes all
        labels -1.""",
    ),
]
Classes = Annotated[
    int | Sequence[int | None] | None,
    option(
        kind="int or sequence, optional",
        text="Number of classes of each pack; by default found from its identities or labels.",
    ),
]


@checked
def join(
    packs: Sources,
    out: Out,
    labels: Labels = "keep",
    classes: Classes = None,
    *,
    skip_errors: SkipErrors = False,
    **run: Unpack[RunOptions],
) -> PackReport:
    """Join several packs into one, one after the other.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport

    Raises
    ------
    RecordIOError
        If a source is damaged or missing, or is the output, or if names of classes contradict each
        other.
    LabelError
        If a mapping or an array has no entry for a label.
    RecordHeaderError
        If labels change and a record has no image header.
    ValueError, TypeError
        If `packs` is empty or no sequence, `labels` is none of these, or a list of labels or
        classes does not have one entry for each pack.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys are numbered again.  Ids stay, unless two packs have one in common: then the largest id of
    the packs before, plus one, is added to all ids of the later pack.  If one of the packs lists
    identities, the new pack lists those of all images, and its ids are its keys.  Classes of the
    boxes in a field change like the labels; the files ``PREFIX.fields.json`` of the packs must
    agree.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordReader, RecordWriter, join, pack, unpack
    >>> folder = tempfile.mkdtemp()
    >>> for name in "ab":
    ...     with RecordWriter(f"{folder}/{name}.rec") as writer:
    ...         for label in range(2):
    ...             _ = writer.write(pack(IRHeader(0, label, label, 0), name.encode()))
    >>> join([f"{folder}/a", f"{folder}/b"], f"{folder}/both", labels="append").records
    4
    >>> [unpack(record)[0].label for record in RecordReader(f"{folder}/both.rec")]
    [0.0, 1.0, 2.0, 3.0]
    """
    if not len(packs) or isinstance(packs, (str, os.PathLike)):
        raise ValueError(f"packs={packs!r}: expected a sequence of record files")
    manifests = [named_manifest(path) for path in packs]
    if any(manifests):
        if labels != "keep":
            raise ValueError(f"labels={labels!r}: those of shards are kept; relabel the pack")
        pairs = zip(packs, manifests, strict=True)
        packs = [file for path, shards in pairs for file in (shards.files if shards else [path])]
    asked = _each(labels, len(packs), "labels", _is_one_for_each(labels))
    counts = _each(classes, len(packs), "classes", isinstance(classes, Sequence))
    with ExitStack() as stack:
        sources = [stack.enter_context(scan_pack(path, skip_errors)) for path in packs]
        values, changes, identities = label_edits(sources, asked, counts)
        edits = [Edit(*pair) for pair in zip(values, id_shifts(sources), strict=True)]
        sizes = [len(source) for source in sources]
        plan = Plan(
            output_path(out),
            np.repeat(np.arange(len(sources), dtype=np.int32), sizes),
            np.concatenate([np.arange(size) for size in sizes]),
            class_files(sources, changes),
        )
        return write_packs(sources, [plan], edits, identities=identities, changes=changes, **run)


def _is_one_for_each(labels: Any) -> bool:
    """Return True for a list of what to do with each pack; numbers alone are an array."""
    if not isinstance(labels, (list, tuple)):
        return False
    return not all(isinstance(item, Number) for item in labels)


def _each(value: Any, count: int, name: str, several: bool) -> list[Any]:
    if not several:
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name}: {len(value)} were given for {count} packs")
    return list(value)
