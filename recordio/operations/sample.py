"""Some records of a pack, drawn by chance."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np

from ..errors import EmptyRecordFileError
from ..keywords.checks import boolean, integer, real
from ..keywords.functions import checked
from ..keywords.options import option, optional
from ..packs.source import SourcePack
from .changes import output_path
from .options import Cancelled, Out, Path, Seed, SkipErrors, Told
from .output import PackReport, write_packs
from .rewriting import plan_of
from .split import class_by_class, grouped_labels

__all__ = ["sample"]


def _share(name: str, value: Any) -> float:
    number = real(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name}={value}: expected more than 0 and at most 1")
    return number


Count = Annotated[
    int | None,
    option(
        kind="int, optional",
        text="""How many records; with `per_class` of each class, or all of a class that has
        fewer.""",
        check=optional(partial(integer, low=1)),
    ),
]
Fraction = Annotated[
    float | None,
    option(
        kind="float, optional",
        text="""Instead of `n`: what share of the records, more than 0 and at most 1; with
        `per_class` of each class, at least one.""",
        check=optional(_share),
    ),
]
PerClass = Annotated[
    bool,
    option(
        kind="bool",
        text="""Draw from each class.  The class of a record is its first label, or that of its
        first object.""",
        check=boolean,
    ),
]


@checked
def sample(
    path: Path,
    out: Out,
    n: Count = None,
    fraction: Fraction = None,
    seed: Seed = 0,
    *,
    per_class: PerClass = False,
    skip_errors: SkipErrors = False,
    progress: Told = None,
    cancelled: Cancelled = lambda: False,
) -> PackReport:
    """Make a pack of some records of another, drawn without replacement, in their old order.

    Parameters
    ----------
    {parameters}

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
