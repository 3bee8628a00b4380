"""The records of a pack in the order of something that they say."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from ..errors import ImageDecodeError
from ..image_size import image_size
from .changes import output_path
from .output import PackReport, Progress, write_packs
from .passes import pass_over
from .rewriting import WINDOW, check_target, check_window, need_records, plan_of
from .source import SourcePack

__all__ = ["SORT_KEYS", "sort"]

#: What records can be sorted by, and what that is.
SORT_KEYS = {
    "label": "the first class label; records without one, and those that are no number, come last",
    "key": "the key in the index",
    "id": "the id in the image header",
    "bytes": "the size of the record, in bytes",
    "size": "the pixels of the image, width x height",
}


def sort(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    by: str = "label",
    *,
    reverse: bool = False,
    window: int = WINDOW,
    skip_errors: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackReport:
    """Write the records of a pack in another order; equal ones stay in the order of the file.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, with or without ``.rec``; ``PREFIX.idx`` is used if it is there.
    out : str or os.PathLike
        The record file to write, with its index; existing ones are replaced.
    by : {"label", "key", "id", "bytes", "size"}
        The first class label (of a detection record that of its first object; records without one
        come last); the key; the id in the image header; the size of the record; or the number of
        pixels, which is read from the header of the image.
    reverse : bool
        The largest first; equal ones still in the order of the file.
    window : int
        Bytes that are put together in memory before they are written, and read in the order of the
        source.
    skip_errors : bool
        Leave damaged records out and count them, and those without what they are sorted by;
        otherwise the first one stops everything.
    threads : int, optional
        How many look at images, by default one for every processor.
    progress : callable, optional
        ``progress(done, total)``: records written so far, and in all.
    cancelled : callable, optional
        Asked now and then; when true, `KeyboardInterrupt` is raised and nothing is published.

    Returns
    -------
    PackReport

    Raises
    ------
    RecordIOError
        If the source is damaged or is the output.
    RecordHeaderError
        If a record has no image header and is sorted by what stands there.
    ImageDecodeError
        If a record is no image and is sorted by its size.
    EmptyRecordFileError
        If there is no record.
    ValueError
        If `by` is none of these, or `window` is not above 0.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys are numbered again, in the new order; ids stay with their records.  In a face-recognition
    pack the keys go from identity to identity, whatever the order in the file is.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordReader, RecordWriter, pack, unpack
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for label in (2, 0, 1):
    ...         _ = writer.write(pack(IRHeader(0, label, 0, 0), b"content"))
    >>> sort(f"{folder}/a", f"{folder}/b").records
    3
    >>> [unpack(record)[0].label for record in RecordReader(f"{folder}/b.rec")]
    [0.0, 1.0, 2.0]
    """
    if by not in SORT_KEYS:
        raise ValueError(f"by={by!r}: expected one of {', '.join(map(repr, SORT_KEYS))}")
    check_window(window)
    with SourcePack(path, skip_errors) as pack:
        target = output_path(out)
        check_target(pack, target)
        need_records(pack)
        if by == "size":
            values, rows = _pixels(pack, threads, cancelled)
        else:
            values = _values(pack, by)
            rows = np.arange(len(pack))
        plan = plan_of(pack, target, rows[_order(values[rows], reverse)])
        return write_packs([pack], [plan], window=window, progress=progress, cancelled=cancelled)


def _values(pack: SourcePack, by: str) -> np.ndarray:
    if by == "key":
        return pack.keys
    if by == "bytes":
        return pack.sizes
    pack.need_labels()
    return pack.ids if by == "id" else pack.labels.first_of(np.arange(len(pack)))


def _order(values: np.ndarray, reverse: bool) -> np.ndarray:
    """A stable order of values, ascending or descending; those that are no numbers come last."""
    if not reverse:
        return np.argsort(values, kind="stable")
    order = len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]
    nothing = np.isnan(values[order])
    return np.concatenate([order[~nothing], order[nothing]])


def _pixels(
    pack: SourcePack, threads: int | None, cancelled: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray]:
    """The pixels of each image, and the records that are images."""

    def measure(number: int, content: memoryview) -> int:
        try:
            width, height = image_size(content)
        except ImageDecodeError as error:
            if not pack.skip_errors:
                raise ImageDecodeError(error.reason, **pack.place(number)) from None
            return -1
        return width * height

    def look(done: int) -> None:
        if cancelled():
            raise KeyboardInterrupt

    found = [pixels for _, some in pass_over(pack, measure, threads, look) for pixels in some]
    values = np.array(found, np.int64)
    for number in np.flatnonzero(values < 0).tolist():
        pack.problem(number, "image", "it is no image with a size")
    return values, np.flatnonzero(values >= 0)
