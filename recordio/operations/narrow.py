"""A pack whose image headers have labels of 64 bits, with the usual ones of 32."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from ..bytes.files import StoredFile
from ..errors import LabelError, RecordHeaderError, RecordIOError
from ..frames.writer import RecordWriter
from ..header import pack, unpack
from ..packs.names import pack_prefix
from ..packs.source import SourcePack
from .changes import output_path
from .output import PackReport, PackWritten, Progress
from .rewriting import check_target, need_records

__all__ = ["narrow"]

#: Records between two looks at what the caller wants.
STEP = 1024


def narrow(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    skip_errors: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackReport:
    """Write a pack whose image headers have 32 bytes, and labels of 64 bits, with usual ones.

    Some face-recognition code writes such headers (`struct` format ``IdQQ``), because the keys that
    identity records hold are not exact as 32-bit floats from 2**24 on.  They are rounded here as
    everywhere, and found again by the labels of the images.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, with or without ``.rec``; ``PREFIX.idx`` is used if it is there.
    out : str or os.PathLike
        The record file to write, with its index; existing ones are replaced.
    skip_errors : bool
        Leave records out, and count them, that are damaged or have no such header; otherwise the
        first one stops everything.
    progress : callable, optional
        ``progress(done, total)``: records written so far, and in all.
    cancelled : callable, optional
        Asked now and then; when true, `KeyboardInterrupt` is raised and nothing is published.

    Returns
    -------
    PackReport

    Raises
    ------
    RecordHeaderError
        If a record has no such header.
    LabelError
        If a label is too large for a 32-bit float.
    RecordIOError
        If the source is damaged or is the output.
    EmptyRecordFileError
        If it has no record.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys, ids, contents and the order in the file stay.  Labels are rounded to the nearest float.

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
    with SourcePack(path, skip_errors, everything=True) as source:
        check_target(source, target)
        need_records(source)
        written = 0
        with RecordWriter(target, f"{pack_prefix(target)}.idx") as writer:
            for number in range(len(source)):
                if number % STEP == 0 and cancelled():
                    raise KeyboardInterrupt
                key = int(source.keys[number])
                try:
                    writer.write(_narrowed(source.record(number)), key)
                    written += 1
                except (RecordHeaderError, LabelError) as error:
                    if not skip_errors:
                        raise error.at(**source.place(number)) from None
                    source.problem(number, "no_header", error.reason)
                if progress is not None and number % STEP == STEP - 1:
                    progress(number + 1, len(source))
            if not written:
                raise RecordIOError("no record has a header of 32 bytes", path=source.path)
        problems = tuple(f"{source.path}: {problem}" for problem in source.problems)
        size = StoredFile(target).size()
        return PackReport((PackWritten(target, written, size),), len(problems), problems)


def _narrowed(record: memoryview) -> bytes:
    """A record with the usual header."""
    header, content = unpack(record, label_dtype="float64")
    most = np.abs(np.nan_to_num(header.label, posinf=0, neginf=0)).max(initial=0)
    if most > np.finfo(np.float32).max:
        raise LabelError(f"the label {most:g} is too large for a 32-bit float")
    label = header.label if header.flag == 0 else header.label.astype(np.float32)
    return pack(header._replace(label=label), bytes(content))
