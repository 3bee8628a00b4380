"""The records of a pack in another order: random, or sorted by one of their properties."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Unpack

import numpy as np

from ..errors import ImageDecodeError
from ..formats.image_header import read_header
from ..keywords.checks import boolean, choice
from ..keywords.functions import checked
from ..keywords.options import option
from ..packs.scanned_pack import ScannedPack
from .options import Out, Path, RunOptions, Seed, SkipErrors, Threads, Window
from .output import PackReport
from .passes import pass_over
from .rewriting import WINDOW, rewrite


@checked
def shuffle(
    path: Path,
    out: Out,
    seed: Seed = 0,
    *,
    window: Window = WINDOW,
    skip_errors: SkipErrors = False,
    **run: Unpack[RunOptions],
) -> PackReport:
    """Write the records of a pack in a random order.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport

    Raises
    ------
    RecordIOError
        If the source is damaged or missing, or is the output.
    EmptyRecordFileError
        If the source has no record.
    ValueError
        If `seed` or `window` is out of range.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys are numbered again, in the new order; ids stay with their records.  In a face-recognition
    pack ids are keys, which go from identity to identity, as its identity records require, and only
    the order in the file is random.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import RecordReader, RecordWriter
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(5):
    ...         _ = writer.write(b"%d" % number)
    >>> shuffle(f"{folder}/a", f"{folder}/b", seed=1).records
    5
    >>> [int(bytes(record)) for record in RecordReader(f"{folder}/b.rec", f"{folder}/b.idx")]
    [4, 0, 1, 2, 3]
    """

    def choose(pack: ScannedPack) -> np.ndarray:
        return np.random.default_rng(seed).permutation(len(pack))

    return rewrite(path, out, choose, window=window, skip_errors=skip_errors, **run)


#: Keys to sort by, and their meanings.
SORT_KEYS = {
    "label": """the first class label, or that of the first object; records without a label, and
    labels that are not numbers, come last""",
    "key": "the key in the index",
    "id": "the id in the image header",
    "bytes": "the size of the record, in bytes",
    "size": "the pixels of the image, width x height, as its header says",
}


By = Annotated[
    str,
    option(
        kind=f"{{{', '.join(map(repr, SORT_KEYS))}}}",
        text="; ".join(f"{name}: {meaning}" for name, meaning in SORT_KEYS.items()) + ".",
        check=partial(choice, allowed=tuple(SORT_KEYS)),
    ),
]
Reverse = Annotated[
    bool,
    option(
        kind="bool",
        text="Put the largest first; equal records still keep the order of the file.",
        check=boolean,
    ),
]


@checked
def sort(
    path: Path,
    out: Out,
    by: By = "label",
    *,
    reverse: Reverse = False,
    window: Window = WINDOW,
    threads: Threads = None,
    skip_errors: SkipErrors = False,
    **run: Unpack[RunOptions],
) -> PackReport:
    """Write the records of a pack in another order; equal ones keep the order of the file.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport

    Raises
    ------
    RecordIOError
        If the source is damaged or missing, or is the output.
    RecordHeaderError
        For ``by="label"`` and ``by="id"``, if a record has no image header.
    ImageDecodeError
        For ``by="size"``, if a record is no image; with `skip_errors` it is left out.
    EmptyRecordFileError
        If the source has no record.
    ValueError
        If `by` is none of these, or `window` or `threads` is below 1.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys are numbered again, in the new order; ids stay with their records.  In a face-recognition
    pack the keys go from identity to identity, and only the file has the new order.

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

    def choose(pack: ScannedPack) -> np.ndarray:
        if by == "size":
            values, rows = _pixels(pack, threads, run["cancelled"])
            return rows[_order(values[rows], reverse)]
        return _order(_values(pack, by), reverse)

    return rewrite(path, out, choose, window=window, skip_errors=skip_errors, **run)


def _values(pack: ScannedPack, by: str) -> np.ndarray:
    if by == "key":
        return pack.keys
    if by == "bytes":
        return pack.sizes
    pack.need_labels()
    return pack.ids if by == "id" else pack.labels.first_of(np.arange(len(pack)))


def _order(values: np.ndarray, reverse: bool) -> np.ndarray:
    """Order values, ascending or descending, keeping ties; those that are no numbers come last."""
    if not reverse:
        return np.argsort(values, kind="stable")
    order = len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]
    nothing = np.isnan(values[order])
    return np.concatenate([order[~nothing], order[nothing]])


def _pixels(
    pack: ScannedPack, threads: int | None, cancelled: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Count the pixels of each image, and find the records that are images.

    Sizes are those beside the pack; the content of a record without one is looked at.
    """

    def measure(number: int, content: memoryview) -> int:
        try:
            width, height = read_header(content).size
        except ImageDecodeError as error:
            if not pack.skip_errors:
                number = int(unknown[number])
                raise ImageDecodeError(error.reason, **pack.location(number)) from None
            return -1
        return width * height

    values = pack.image_sizes.astype(np.int64).prod(1)
    unknown = np.flatnonzero(values == 0)
    if len(unknown):
        looking = pass_over(pack.part(unknown), measure, threads, cancelled=cancelled)
        values[unknown] = [pixels for _, some in looking for pixels in some]
    for number in np.flatnonzero(values < 0).tolist():
        pack.problem(number, "image", "it is no image with a size")
    return values, np.flatnonzero(values >= 0)
