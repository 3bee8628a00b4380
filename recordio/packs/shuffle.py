"""The records of a pack in random order, for readers that can only go forward."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from .changes import output_path
from .output import PackReport, Progress, write_packs
from .rewriting import WINDOW, check_window, need_records, plan_of
from .source import SourcePack

__all__ = ["shuffle"]


def shuffle(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    seed: int = 0,
    *,
    window: int = WINDOW,
    skip_errors: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackReport:
    """Write the records of a pack in an order in which every one may stand anywhere.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, with or without ``.rec``; ``PREFIX.idx`` is used if it is there.
    out : str or os.PathLike
        The record file to write, with its index; existing ones are replaced.
    seed : int
        At least 0: another order for another seed, the same every time for the same one.
    window : int
        Bytes that are put together in memory before they are written, and read in the order of the
        source: more spare a slow disk seeks.  The order does not depend on it.
    skip_errors : bool
        Leave damaged records out and count them; otherwise the first one stops everything.
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
    EmptyRecordFileError
        If it has no record.
    ValueError
        If `seed` is negative or `window` is not above 0.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys are numbered again, in the new order; ids stay with their records.  In a face-recognition
    pack the keys go from identity to identity, because that is how identities are listed, and only
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
    check_window(window)
    generator = np.random.default_rng(seed)
    with SourcePack(path, skip_errors) as pack:
        need_records(pack)
        plan = plan_of(pack, output_path(out), generator.permutation(len(pack)))
        return write_packs([pack], [plan], window=window, progress=progress, cancelled=cancelled)
