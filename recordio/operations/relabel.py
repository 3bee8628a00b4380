"""A pack with other labels, or with labels of 32 bits in place of those of 64 bits."""

from __future__ import annotations

import os
from array import array
from typing import Annotated, Any, Unpack

import numpy as np

from ..bytes.storage import naming_output
from ..errors import LabelError, RecordHeaderError, RecordIOError
from ..frames.companions import INDEX
from ..header import pack, unpack
from ..keywords.functions import checked
from ..keywords.options import option
from ..list_files import is_list, read_entries
from ..packs.names import pack_prefix
from ..packs.scanned_container import scan_pack
from ..packs.scanned_pack import ScannedPack
from .copying import Edit, Vectors
from .kept_keys import KeptKeys
from .options import Out, Path, RunOptions, SkipErrors
from .output import PackReport, PackWritten, Plan, write_packs
from .rewriting import check_target, class_files, label_edits, need_records, output_path

#: Records between two looks at whether to go on.
STEP = 1024

Labels = Annotated[
    Any,
    option(
        kind='mapping, array_like, callable, "dense", path or None',
        text="""New label of each class label, as a mapping or as an array with one number for each
        label from 0 on; or a function that is called once, with the array of the different labels,
        and returns as many numbers. ``"dense"`` numbers the different labels from 0 on, ascending.
        The path of a ``.lst`` file: each record gets the labels of the line with its id, one or
        many. None makes all labels -1.""",
    ),
]


@checked
def relabel(
    path: Path,
    out: Out,
    labels: Labels,
    *,
    skip_errors: SkipErrors = False,
    **run: Unpack[RunOptions],
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
        If a mapping or an array has no entry for a label, or a list has no line for an id or a line
        that cannot be parsed.
    RecordHeaderError
        If a record has no image header.
    ValueError, TypeError
        If `labels` is none of these.
    FieldError
        If labels come from a list and a field has boxes.
    RecordIOError
        If the source is damaged or missing, or is the output, or if two lines of the list have one
        id.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Class labels are the first label of each record, or the classes of its objects; the other
    labels of a record stay, unless a list replaces all of them.  A face-recognition pack lists the
    identities of the new labels.  The classes of boxes in a field change like the labels; the
    values of masks stay.

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
    with scan_pack(path, skip_errors) as source:
        identities = None
        if is_list(labels):
            source.need_labels()
            edit, classes, change = _listed(source, labels), {}, None
        else:
            asked = _dense if isinstance(labels, str) else labels
            values, changes, identities = label_edits([source], [asked], [None])
            edit, classes = Edit(values[0]), class_files([source], changes)
            change = changes[0]
        rows = np.arange(len(source))
        plan = Plan(output_path(out), np.zeros(len(rows), np.int32), rows, classes)
        return write_packs([source], [plan], [edit], identities=identities, changes=[change], **run)


def _dense(labels: np.ndarray) -> np.ndarray:
    """The different labels, ascending, become 0, 1, 2, ..."""
    return np.arange(len(labels))


def _listed(source: ScannedPack, path: str | os.PathLike[str]) -> Edit:
    """Look up the labels that a list has for each id."""
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
    is_listed = rows < len(listed)
    is_listed[is_listed] = listed[rows[is_listed]] == source.ids[is_listed]
    if not is_listed.all():
        number = int(np.argmin(is_listed))
        raise LabelError(
            f"{os.fsdecode(path)} has no line for its id",
            record_id=int(source.ids[number]),
            **source.location(number),
        )
    rows = order[rows]
    ends = np.cumsum(np.array(counts, np.int64))
    labels = np.array(values, np.float32)
    if not source.flags.any() and (np.array(counts) == 1).all():
        return Edit(labels[rows])  # one word of each record changes
    return Edit(vectors=Vectors(ends[rows] - np.array(counts, np.int64)[rows], ends[rows], labels))


@checked
def narrow(
    path: Path, out: Out, *, skip_errors: SkipErrors = False, **run: Unpack[RunOptions]
) -> PackReport:
    """Replace image headers with 64-bit labels by the usual ones, in a new pack.

    Some face-recognition code writes such headers (`struct` format ``IdQQ``), because the keys in
    identity records are not exact as 32-bit floats from 2**24 on.  `narrow` rounds these keys;
    readers find the images of an identity by the labels of the images.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport
        Its `records` include those that list identities.

    Raises
    ------
    RecordHeaderError
        If a record has no such header.
    LabelError
        If a label is too large for a 32-bit float.
    FieldError
        If `fields` names one that is not there, or one of another pack lies beside the output.
    RecordIOError
        If the source is damaged or missing, or is the output.
    EmptyRecordFileError
        If the source has no record.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys, ids, contents and the order in the file stay, and the list, the names of classes and the
    fields are copied.  Labels are rounded to the nearest float.  With `skip_errors` records that
    have no such header are left out as well.

    Examples
    --------
    >>> import struct, tempfile
    >>> from recordio import RecordReader, RecordWriter, unpack
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     _ = writer.write(struct.pack("IdQQ", 0, 3.0, 7, 0) + b"image")
    >>> narrow(f"{folder}/a", f"{folder}/b").records
    1
    >>> unpack(RecordReader(f"{folder}/b.rec")[0].tobytes())
    (IRHeader(flag=0, label=3.0, id=7, id2=0), b'image')
    """
    target = output_path(out)
    progress, cancelled = run["progress"], run["cancelled"]
    with scan_pack(path, skip_errors, everything=True) as source:
        check_target(source, target)
        need_records(source)
        keys, index = array("q"), pack_prefix(target) + INDEX.ending
        name = source.file.name
        with (
            naming_output(target),
            KeptKeys(name, target, index, run["fields"], left_out=skip_errors) as output,
        ):
            for number in range(len(source)):
                if number % STEP == 0 and cancelled():
                    raise KeyboardInterrupt
                try:
                    record = _narrowed(source.record(number))
                except (RecordHeaderError, LabelError) as error:
                    if not skip_errors:
                        raise error.at(**source.location(number)) from None
                    source.problem(number, "no_header", error.reason)
                else:
                    keys.append(int(source.keys[number]))
                    output.write(record, keys[-1])
                if progress is not None and number % STEP == STEP - 1:
                    progress(number + 1, len(source))
            if not keys:
                raise RecordIOError("no record has a header of 32 bytes", path=source.path)
            field_problems = output.copy_fields(np.array(keys))
            size = output.tell()
        problems = (*map(source.said, source.problems), *map(str, field_problems))
        written = PackWritten(target, len(keys), size, fields=tuple(output.copied_fields))
        return PackReport((written,), len(problems), problems)


def _narrowed(record: memoryview) -> bytes:
    """Give a record the usual header."""
    header, content = unpack(record, label_dtype="float64")
    most = np.abs(np.nan_to_num(header.label, posinf=0, neginf=0)).max(initial=0)
    if most > np.finfo(np.float32).max:
        raise LabelError(f"the label {most:g} is too large for a 32-bit float")
    label = header.label if header.flag == 0 else header.label.astype(np.float32)
    return pack(header._replace(label=label), bytes(content))
