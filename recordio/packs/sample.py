"""Some records of a pack, drawn by chance."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from ..errors import EmptyRecordFileError
from .changes import output_path
from .output import PackReport, Progress, write_packs
from .rewriting import plan_of
from .source import SourcePack
from .split import class_by_class, grouped_labels

__all__ = ["sample"]


def sample(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    n: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
    *,
    per_class: bool = False,
    skip_errors: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackReport:
    """Make a pack of some records of another, drawn without replacement, in their old order.

    Parameters
    ----------
    path : path
        The record file, with or without ``.rec``.
    out : path
        The record file to write, with its index.
    n : int
        How many records; with `per_class` of each class, or all of a class that has fewer.
    fraction : float
        Instead of `n`: what share of the records, 0 < fraction <= 1; with `per_class` of each
        class, at least one.
    seed : int
        Other records; the same ones every time for the same seed.
    per_class : bool
        Draw from each class.  The class of a record is its first label, or that of its first
        object.
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
    ValueError
        If not exactly one of `n` and `fraction` is given, or it is out of range; or if `n` is more
        than there are.
    EmptyRecordFileError
        If no record would be drawn.
    RecordIOError
        If the source is damaged.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, pack, sample
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(pack(IRHeader(0, number % 2, number, 0), b"content"))
    >>> sample(f"{folder}/a", f"{folder}/few", n=2, per_class=True).records
    4
    """
    if (n is None) == (fraction is None):
        raise ValueError("give either n or fraction")
    if n is not None and n < 1:
        raise ValueError(f"n={n}: expected at least 1")
    if fraction is not None and not 0 < fraction <= 1:
        raise ValueError(f"fraction={fraction}: expected more than 0 and at most 1")
    with SourcePack(path, skip_errors) as source:
        count = len(source)
        labels = grouped_labels(source) if per_class else np.zeros(count, np.int64)
        sizes = np.bincount(labels)
        if n is None:
            wanted = np.rint(sizes * np.float64(fraction)).astype(np.int64)
            wanted = np.maximum(wanted, 1) if per_class else wanted
        elif per_class or n <= count:
            wanted = np.minimum(sizes, n)
        else:
            raise ValueError(f"n={n}: {source.path} has {count} records only")
        if not wanted.sum():
            raise EmptyRecordFileError("no record would be drawn", path=source.path)
        order = np.random.default_rng(seed).permutation(count)
        order, within = class_by_class(order, labels)
        chosen = np.sort(order[within < np.repeat(wanted, sizes)])
        plan = plan_of(source, output_path(out), chosen)
        return write_packs([source], [plan], progress=progress, cancelled=cancelled)
