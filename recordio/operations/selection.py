"""Some records of a pack: drawn by chance, by a condition, or by a list."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from ..errors import EmptyRecordFileError, ImageDecodeError, LabelError
from ..formats.decode import decode_image
from ..formats.image_header import read_header
from ..formats.table import kind_of
from ..keywords.checks import boolean, integer, real
from ..keywords.functions import checked
from ..keywords.options import option, optional
from ..packs.chosen import chosen_records
from ..packs.scanned_pack import ScannedPack
from .division import class_by_class, grouped_labels
from .expression import Condition
from .options import Out, Path, Progress, RunOptions, Seed, SkipErrors
from .output import PackReport
from .passes import pass_over
from .rewriting import rewrite


def _share(name: str, value: Any) -> float:
    number = real(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name}={value}: expected more than 0 and at most 1")
    return number


Count = Annotated[
    int | None,
    option(
        kind="int, optional",
        text="""Number of records; with `per_class`, of each class, or all of a class that has
        fewer.""",
        check=optional(partial(integer, low=1)),
    ),
]
Fraction = Annotated[
    float | None,
    option(
        kind="float, optional",
        text="""Share of the records, instead of `n`: above 0 and at most 1; with `per_class`, of
        each class, and at least one record.""",
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
    **run: Unpack[RunOptions],
) -> PackReport:
    """Make a pack from random records of another, without repetition and in their order.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport

    Raises
    ------
    ValueError
        If not exactly one of `n` and `fraction` is given, one is out of range, or there are fewer
        than `n` records.
    EmptyRecordFileError
        If no record would be drawn.
    RecordHeaderError
        With `per_class`, if a record has no image header.
    RecordIOError
        If the source is damaged or missing, or is the output.
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

    def choose(source: ScannedPack) -> np.ndarray:
        count = len(source)
        labels = grouped_labels(source) if per_class else np.zeros(count, np.int64)
        sizes = np.bincount(labels)
        if n is None:
            counts = np.rint(sizes * np.float64(fraction)).astype(np.int64)
            counts = np.maximum(counts, 1) if per_class else counts
        elif per_class or n <= count:
            counts = np.minimum(sizes, n)
        else:
            raise ValueError(f"n={n}: {source.path} has only {count} records")
        if not counts.sum():
            raise EmptyRecordFileError("no record would be drawn", path=source.path)
        order = np.random.default_rng(seed).permutation(count)
        order, within = class_by_class(order, labels)
        return np.sort(order[within < np.repeat(counts, sizes)])

    return rewrite(path, out, choose, skip_errors=skip_errors, **run)


def _condition(name: str, value: Any) -> str:
    Condition(value)
    return str(value)


Where = Annotated[
    str | None,
    option(
        kind="str, optional",
        text="""A condition: comparisons of names, numbers and texts with ``and``, ``or``, ``not``,
        ``in`` and arithmetic, such as ``label < 10 and width >= 112`` or ``class == 'cat'``.  It is
        not executed as Python.  The names are label, class, labels, objects, width, height, bytes,
        format, decodable, id and key.""",
        check=optional(_condition),
    ),
]
Keys = Annotated[
    str | os.PathLike[str] | Iterable[int] | None,
    option(
        kind="path or iterable of int, optional",
        text="""Keys of records; a text file with one in each line; or a ``.lst`` file, whose lines
        begin with ids. With `where`, both must hold.""",
    ),
]
Drop = Annotated[bool, option(kind="bool", text="Keep all other records instead.", check=boolean)]


@checked
def filter(
    path: Path,
    out: Out,
    where: Where = None,
    keys: Keys = None,
    *,
    drop: Drop = False,
    skip_errors: SkipErrors = False,
    **run: Unpack[RunOptions],
) -> PackReport:
    """Make a pack from the records of another that meet a condition or are in a list.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport

    Raises
    ------
    ExpressionError
        If the condition cannot be parsed, or uses a name or a class that does not exist.
    ValueError
        If neither a condition nor keys are given.
    KeyNotFoundError
        If a key or id in `keys` belongs to no record.
    EmptyRecordFileError
        If no record would be kept.
    RecordIOError
        If the source is damaged or missing, or is the output.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    ==================== ===========================================================================
    ``label``            the first label, or the class of the first object
    ``class``            the same, and both may be compared with names: ``class == "cat"``
    ``labels``           all labels, or the classes of all objects: ``3 in labels``, ``len(labels)``
    ``objects``          how many objects a detection record has; 0 in other packs
    ``width, height``    of the upright image in pixels, by its header
    ``bytes``            size of the content, without image header
    ``format``           ``"jpeg"``, ``"png"``, ``"webp"``, ... ``"npy"``, ``"empty"``, ``"other"``
    ``decodable``        whether it is an image within the default limits that training can decode
    ``id, key``          the id in the image header, and the key in the index
    ==================== ===========================================================================

    A value that a record lacks (the size of content that is no image, the label of a record without
    objects) is NaN: all comparisons with it fail, except ``!=``.  ``and`` and ``or`` evaluate their
    right side only for the records that need it, so slow conditions should come last.

    Names of classes are those in ``PREFIX.classes.txt``, for ``==``, ``!=``, ``in`` and ``not in``:
    ``class in ("cat", "dog")``, ``"cat" in labels``.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, filter, pack
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(pack(IRHeader(0, number % 3, number, 0), b"content" * number))
    >>> filter(f"{folder}/a", f"{folder}/b", "label in (0, 2) and bytes > 20").records
    5
    """
    if where is None and keys is None:
        raise ValueError("give a condition, keys, or both")

    def choose(source: ScannedPack) -> np.ndarray:
        matches = np.ones(len(source), bool)
        if keys is not None:
            matches = np.isin(np.arange(len(source)), chosen_records(source, keys))
        if where is not None:
            condition = Condition(where)
            if condition.names_classes:
                if source.is_multi_hot:
                    raise LabelError(
                        f"its labels are rows of 0 and 1 for {len(source.classes)} classes, and "
                        "`label` is the first of them: compare with numbers instead of names",
                        path=source.path,
                    )
                condition = condition.with_classes(source.classes)
            rows = np.flatnonzero(matches)
            columns = _Columns(source.part(rows), run["progress"], run["cancelled"])
            matches[rows] = condition(len(rows), columns)
        chosen = np.flatnonzero(matches != drop)
        if not len(chosen):
            raise EmptyRecordFileError(
                "no record would be kept: change where, keys or drop", path=source.path
            )
        return chosen

    return rewrite(path, out, choose, skip_errors=skip_errors, **run)


class _Columns:
    """Facts about the records of a pack, by the names of `Condition`."""

    def __init__(
        self, pack: ScannedPack, progress: Progress | None, cancelled: Callable[[], bool]
    ) -> None:
        self.pack, self.progress, self.cancelled = pack, progress, cancelled

    def __call__(self, name: str, rows: np.ndarray) -> Any:
        pack = self.pack
        if name == "label":
            return pack.labels.first_of(rows)
        if name == "labels":
            return self._labels(rows)
        if name == "objects":
            return np.diff(pack.labels.starts)[rows] * pack.is_detection
        if name == "bytes":
            return pack.sizes[rows] - pack.header_sizes(rows)
        if name in ("id", "key"):
            return (pack.ids if name == "id" else pack.keys)[rows]
        if name in SIZES and len(rows) * FEW_RECORDS >= len(pack.all_offsets):
            sizes = pack.image_sizes[rows, SIZES.index(name)]
            return np.where(sizes > 0, sizes, np.nan)
        return self._contents(CONTENT[name], rows)

    def _labels(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many labels records have, and all of these."""
        pack = self.pack
        if pack.is_detection or not pack.flags[rows].any():
            starts = pack.labels.starts
            return np.diff(starts)[rows], pack.labels.values[pack.labels.numbers_of(rows)]
        return pack.vectors(rows)

    def _contents(self, work: Callable[[memoryview], Any], rows: np.ndarray) -> np.ndarray:
        """Apply a function to the content of each record."""
        looking = pass_over(
            self.pack.part(rows),
            lambda number, content: work(content),
            progress=self.progress,
            cancelled=self.cancelled,
        )
        return np.array([result for _, results in looking for result in results])


def _size(axis: int) -> Callable[[memoryview], float]:
    def size(content: memoryview) -> float:
        try:
            return float(read_header(content).size[axis])
        except ImageDecodeError:
            return np.nan

    return size


#: Columns of the sizes beside a pack, which are read if a condition depends on that share of its
#: records at least; of fewer the contents are looked at.
SIZES, FEW_RECORDS = ("width", "height"), 8
#: What may be asked of an image; TIFF of floating point has one of the last alone.
PIXELS = ((3, "uint8"), (1, "float32"), (3, "float32"))


def _decodable(content: memoryview) -> bool:
    for channels, dtype in PIXELS:
        with contextlib.suppress(ImageDecodeError):
            decode_image(content, channels=channels, dtype=dtype)
            return True
    return False


#: Facts that are in the content itself.
CONTENT: dict[str, Callable[[memoryview], Any]] = {
    "width": _size(0),
    "height": _size(1),
    "format": kind_of,
    "decodable": _decodable,
}
