"""Save the intact records of a damaged pack, and the files beside it."""

from __future__ import annotations

import os

from ..bytes.files import StoredFile
from ..frames.check import Name, Problem, Report
from ..frames.checksums import checksums_path, read_checksums
from ..frames.index_file import read_index
from ..packs.field_files import field_names
from .kept_keys import KeptKeys, copy_whole


def repair(
    path: Name,
    out: Name,
    index: Name | None = None,
    out_index: Name | None = None,
    checksums: Name | None = None,
) -> Report:
    """Copy every intact record of a damaged file to a new one, with a new index.

    Parameters
    ----------
    path : str or os.PathLike
        The damaged record file; it is left as it is.
    out : str or os.PathLike
        The record file to write or to replace; not `path`.
    index : str or os.PathLike, optional
        The index of `path`, to keep its keys.  Records that it does not list get new keys after the
        largest.
    out_index : str or os.PathLike, optional
        The index to write; by default `out` with the suffix ``.idx``.  Without `index` its keys are
        the positions in `out`.
    checksums : str or os.PathLike, optional
        The ``.crc`` file of `path`.  Only records that match their checksums are copied then, and
        `out` gets a ``.crc`` file, too.

    Returns
    -------
    Report
        About `path`: the number of copied `records`, and the `problems`.

    Raises
    ------
    ChecksumFileError
        If `checksums` cannot be used or belongs to another record file; leave it out then.
    IndexFileError
        If `index` cannot be parsed; leave it out then.
    ValueError
        If an output is one of the inputs.
    TruncatedRecordError
        If the file becomes shorter while it is read.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> from recordio.frames.encoder import encode
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> _ = path.write_bytes(b"damaged!" + encode(b"whole"))
    >>> report = repair(path, path.with_name("b.rec"))
    >>> report.records, report.lost_bytes
    (1, 8)
    >>> [bytes(record) for record in recordio.RecordReader(path.with_name("b.rec"))]
    [b'whole']
    """
    report = Report(os.fsdecode(path), index_path=None if index is None else os.fsdecode(index))
    out = os.fsdecode(out)
    out_index = os.path.splitext(out)[0] + ".idx" if out_index is None else os.fsdecode(out_index)
    outputs = [out, out_index]
    inputs = [report.path] if index is None else [report.path, os.fsdecode(index)]
    if checksums is not None:
        outputs.append(checksums_path(out))
        inputs.append(os.fsdecode(checksums))
    for target in outputs:
        for source in inputs:
            if os.path.realpath(source) == os.path.realpath(target):
                raise ValueError(f"{source} would be overwritten: give another output")
    listed = None if index is None else read_index(index)
    table = None if checksums is None else read_checksums(checksums)
    # Without an index keys are counted anew, and those of fields are not.
    names: list[str] | None = [] if index is None else None
    with KeptKeys(
        report.path, out, out_index, names, left_out=True, checksums=table is not None
    ) as output:
        keys = copy_whole(report, listed, table, output)
        report.problems += output.copy_fields(keys)
    for name in field_names(StoredFile(report.path)) if index is None else ():
        reason = "it is not copied: without an index nobody knows which record belongs to which"
        report.problems.append(Problem("field", f"field {name}: {reason}"))
    return report
