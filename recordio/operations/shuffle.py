"""The records of a pack in random order, for readers that can only go forward."""

from __future__ import annotations

import numpy as np

from ..keywords.functions import checked
from ..packs.source import SourcePack
from .changes import output_path
from .options import Cancelled, Out, Path, Seed, SkipErrors, Told, Window
from .output import PackReport, write_packs
from .rewriting import WINDOW, need_records, plan_of

__all__ = ["shuffle"]


@checked
def shuffle(
    path: Path,
    out: Out,
    seed: Seed = 0,
    *,
    window: Window = WINDOW,
    skip_errors: SkipErrors = False,
    progress: Told = None,
    cancelled: Cancelled = lambda: False,
) -> PackReport:
    """Write the records of a pack in an order in which every one may stand anywhere.

    Parameters
    ----------
    {parameters}

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
        If `seed` or `window` is out of its range.
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
    generator = np.random.default_rng(seed)
    with SourcePack(path, skip_errors) as pack:
        need_records(pack)
        plan = plan_of(pack, output_path(out), generator.permutation(len(pack)))
        return write_packs([pack], [plan], window=window, progress=progress, cancelled=cancelled)
