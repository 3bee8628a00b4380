"""What a pack holds as a data set, in numbers: records, classes, formats, and its pixels.

Damage, the index and the shapes of images are what ``recordio info`` looks for.
"""

from __future__ import annotations

import collections
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import EmptyRecordFileError, ImageDecodeError, LabelError
from ..formats.image_size import complete_limits
from ..formats.table import kind_of
from ..packs.source import SourcePack
from .passes import pass_over
from .pictures import channel_sums

__all__ = [
    "ClassStatistics",
    "Measured",
    "PackStatistics",
    "PixelStatistics",
    "RecordCounts",
    "measure",
    "stats",
]

CHANNELS = "rgb"


@dataclass(frozen=True)
class ClassStatistics:
    """The classes of a pack: its different class labels, and how many times each occurs.

    Attributes
    ----------
    classes : int
        Different labels.
    smallest, largest : float
        The least label and the greatest.
    records_min, records_median, records_max : int, float, int
        How many times a label occurs: once for each record, or for each object of a detection pack.
    rarest, commonest : float
        A label that occurs least, and one that occurs most; of several the least.
    """

    classes: int
    smallest: float
    largest: float
    records_min: int
    records_median: float
    records_max: int
    rarest: float
    commonest: float

    @classmethod
    def of(cls, values: np.ndarray, counts: np.ndarray) -> ClassStatistics | None:
        """Of different labels, ascending, and how often each occurs; None without finite ones."""
        if not len(values) or not np.isfinite(values).all():
            return None
        return cls(
            len(values),
            float(values[0]),
            float(values[-1]),
            int(counts.min()),
            float(np.median(counts)),
            int(counts.max()),
            float(values[counts.argmin()]),
            float(values[counts.argmax()]),
        )


@dataclass(frozen=True)
class PixelStatistics:
    """Mean and standard deviation of all pixels of a pack, every pixel counted once.

    Attributes
    ----------
    images : int
        Images that were decoded.
    pixels : int
        Their pixels.
    mean, std : tuple of float
        Red, green, blue, in the range 0 to 255.  Grey images count as three equal channels; alpha
        is left out.

    Examples
    --------
    >>> str(PixelStatistics(1, 4, (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)))
    'mean_r=123.675, mean_g=116.28, mean_b=103.53, std_r=58.395, std_g=57.12, std_b=57.375'
    """

    images: int
    pixels: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def keywords(self) -> dict[str, float]:
        """The same as keywords of the iterators over images, to three digits after the point."""
        values = {"mean": self.mean, "std": self.std}
        return {
            f"{name}_{channel}": round(value, 3)
            for name, channels in values.items()
            for channel, value in zip(CHANNELS, channels, strict=True)
        }

    def __str__(self) -> str:
        return ", ".join(f"{name}={value:g}" for name, value in self.keywords().items())


@dataclass(frozen=True)
class PackStatistics:
    """What `stats` found.

    Attributes
    ----------
    path : str
        The record file.
    bytes : int
        Its size.
    records : int
        Records, without those that list identities.
    payload_bytes : int
        Bytes in these records, with their image headers.
    skipped : int
        Records that were left out because they are damaged.
    sizes : dict
        ``min``, ``median`` and ``max`` of the sizes of records, in bytes; empty without records.
    kinds : dict of str to int
        How many records hold which kind of content.
    labels : dict of int to int
        How many records have how many labels.
    identities : int or None
        Identities of a face-recognition pack.
    objects : int or None
        Objects of a detection pack.
    classes : ClassStatistics or None
        None without labels, or where one is not finite.
    pixels : PixelStatistics or None
        With ``mean_std=True``.
    """

    path: str
    bytes: int
    records: int
    payload_bytes: int
    skipped: int
    sizes: dict[str, float]
    kinds: dict[str, int]
    labels: dict[int, int]
    identities: int | None
    objects: int | None
    classes: ClassStatistics | None
    pixels: PixelStatistics | None

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON; with ``keywords`` among the pixels."""
        result = asdict(self)
        if self.pixels is not None:
            result["pixels"]["keywords"] = self.pixels.keywords()
        return result

    def __str__(self) -> str:
        lines = [("file", f"{self.path}, {self.bytes} bytes")]
        skipped = f", {self.skipped} damaged and left out" if self.skipped else ""
        lines.append(("records", f"{self.records}, {self.payload_bytes} bytes in all{skipped}"))
        if self.sizes:
            low, middle, high = (self.sizes[name] for name in ("min", "median", "max"))
            lines.append(("sizes", f"{low} to {high} bytes, median {middle:g}"))
        if self.kinds:
            lines.append(("content", _counts(self.kinds)))
        if self.labels:
            widths = {f"{width} each": count for width, count in self.labels.items()}
            lines.append(("labels", _counts(widths)))
        if self.identities is not None:
            lines.append(("identities", f"{self.identities}; a face-recognition pack"))
        if self.objects is not None:
            lines.append(("objects", f"{self.objects}; a detection pack"))
        if (found := self.classes) is not None:
            lines.append(
                ("classes", f"{found.classes}, from {found.smallest:g} to {found.largest:g}")
            )
            per_class = (
                f"{found.records_min} (class {found.rarest:g}) to {found.records_max} "
                f"(class {found.commonest:g}) of each, median {found.records_median:g}"
            )
            lines.append(("", per_class))
        if self.pixels is not None:
            lines.append(("pixels", f"{self.pixels.pixels} in {self.pixels.images} images"))
            lines.append(("", str(self.pixels)))
        return "\n".join(f"{topic:<12}{text}" for topic, text in lines)


def stats(
    path: str | os.PathLike[str],
    mean_std: bool = False,
    *,
    skip_errors: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **limits: int | None,
) -> PackStatistics:
    """Count what a pack holds, and measure its pixels.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, with or without ``.rec``; ``PREFIX.idx`` is used if it is there, and
        records that it does not list are not counted.
    mean_std : bool
        Decode every image, and find mean and standard deviation of each channel.  The numbers do
        not depend on the number of threads.
    skip_errors : bool
        Count damaged records instead of raising an error at the first.
    threads : int, optional
        How many decode; by default one for every processor.
    progress : callable, optional
        ``progress(done, total)`` is told how many records were read.
    **limits : int or None
        With `mean_std`: images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, which
        mean what they mean for `recordio.unpack_img`, are not decoded, and count as damaged.

    Returns
    -------
    PackStatistics

    Raises
    ------
    RecordIOError
        For a damaged record or index.
    ImageDecodeError
        With `mean_std`, for a record whose content is no image that can be decoded.
    EmptyRecordFileError
        With `mean_std`, if there is no image at all.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from recordio import IRHeader, RecordWriter, pack_img
    >>> path = f"{tempfile.mkdtemp()}/a.rec"
    >>> with RecordWriter(path) as writer:
    ...     for label in (0, 1, 1):
    ...         image = np.full((2, 2, 3), [30, 20, 10 + label], np.uint8)  # blue, green, red
    ...         _ = writer.write(pack_img(IRHeader(0, label, 0, 0), image, img_fmt=".png"))
    >>> found = stats(path, mean_std=True)
    >>> found.records, found.kinds, found.classes.classes, found.classes.records_max
    (3, {'png': 3}, 2, 2)
    >>> print(found.pixels)
    mean_r=10.667, mean_g=20, mean_b=30, std_r=0.471, std_g=0, std_b=0
    """
    found = measure(
        path,
        mean_std,
        skip_errors=skip_errors,
        threads=threads,
        progress=progress,
        **limits,
    )
    return found.statistics()


class RecordCounts:
    """Counts of records as they come: kinds of content, sizes, numbers of labels, and labels.

    Memory holds a number for each different value, and no record.

    Attributes
    ----------
    kinds : Counter of str
    sizes, widths : Counter of int
    labels : Counter of float
    more_labels : bool
        Whether there were more than `most_labels` different ones, which are not told apart.
    least, greatest : float
        Of all labels but NaN; infinite without any.

    Examples
    --------
    >>> counts = RecordCounts(most_labels=2)
    >>> for label in (7.0, 3.0, 8.0, 7.0):
    ...     counts.add("jpeg", 100, 1, [label])
    >>> counts.labels, counts.more_labels, counts.greatest
    (Counter({7.0: 2, 3.0: 1}), True, 8.0)
    """

    def __init__(self, most_labels: int | None = None) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.sizes: collections.Counter[int] = collections.Counter()
        self.widths: collections.Counter[int] = collections.Counter()
        self.labels: collections.Counter[float] = collections.Counter()
        self.more_labels = False
        self.least, self.greatest = math.inf, -math.inf
        self._most_labels = math.inf if most_labels is None else most_labels

    def add(
        self, kind: str, size: int | None = None, width: int = 0, labels: Iterable[float] = ()
    ) -> None:
        """Count one record; what is not given does not count."""
        self.kinds[kind] += 1
        if size is not None:
            self.sizes[size] += 1
        if width:
            self.widths[width] += 1
        for label in labels:
            self._add_label(label if label == label else math.nan, 1)

    def add_columns(self, sizes: np.ndarray, widths: np.ndarray, labels: np.ndarray) -> None:
        """Count many records whose kinds are counted already."""
        for counter, values in ((self.sizes, sizes), (self.widths, widths)):
            counter.update(_counted(values))
        for label, count in _counted(labels).items():
            self._add_label(label if label == label else math.nan, count)

    def _add_label(self, label: float, count: int) -> None:
        self.least, self.greatest = min(self.least, label), max(self.greatest, label)
        if label in self.labels or len(self.labels) < self._most_labels:
            self.labels[label] += count
        else:
            self.more_labels = True

    def __add__(self, other: RecordCounts) -> RecordCounts:
        both = RecordCounts()
        for one in (self, other):
            both.kinds.update(one.kinds)
            both.sizes.update(one.sizes)
            both.widths.update(one.widths)
            both.more_labels |= one.more_labels
            for label, count in one.labels.items():
                both._add_label(label, count)
        both.least, both.greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        return both

    def sizes_in_short(self) -> dict[str, float]:
        """Least, median and greatest size; nothing without any.

        Examples
        --------
        >>> counts = RecordCounts()
        >>> counts.add_columns(np.array([9, 4, 8, 8]), np.ones(4, np.int64), np.zeros(0))
        >>> counts.sizes_in_short()
        {'min': 4, 'median': 8.0, 'max': 9}
        """
        sizes, counts = columns(self.sizes)
        if not len(sizes):
            return {}
        ends = np.cumsum(counts)
        middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
        median = float(sizes[middle].mean())
        return {"min": int(sizes[0]), "median": median, "max": int(sizes[-1])}


def _counted(values: np.ndarray) -> dict[Any, int]:
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def columns(counter: collections.Counter[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Order different values, ascending, and how often each occurs."""
    values = np.array(list(counter.keys()))
    order = np.argsort(values)
    return values[order], np.array(list(counter.values()), np.int64)[order]


@dataclass
class Measured:
    """What was counted in one pack, or in several that are the parts of one.

    Attributes
    ----------
    path : str
    bytes, records, skipped : int
    counts : RecordCounts
    identities : int or None
    is_detection : bool
    pixels : int
    sums : numpy.ndarray of float64, (2, 3), or None
        Of the values of pixels and of their squares: whole numbers.
    """

    path: str
    bytes: int
    records: int
    skipped: int
    counts: RecordCounts
    identities: int | None
    is_detection: bool
    pixels: int
    sums: np.ndarray | None

    def __add__(self, other: Measured) -> Measured:
        """Both together, as parts of one pack.

        Raises
        ------
        LabelError
            If the labels of one alone are those of objects, so that classes cannot be added.
        """
        differ = self.is_detection != other.is_detection
        if self.counts.labels and other.counts.labels and differ:
            one, rest = (self, other) if self.is_detection else (other, self)
            raise LabelError(
                f"its labels are those of objects, and those in {rest.path} are not: measure them "
                "apart",
                path=one.path,
            )
        sums = None if self.sums is None or other.sums is None else self.sums + other.sums
        return Measured(
            self.path,
            self.bytes + other.bytes,
            self.records + other.records,
            self.skipped + other.skipped,
            self.counts + other.counts,
            self.identities,
            self.is_detection or other.is_detection,
            self.pixels + other.pixels,
            sums,
        )

    def statistics(self) -> PackStatistics:
        """What `stats` returns.

        Raises
        ------
        EmptyRecordFileError
            If pixels were to be measured and there are none.
        """
        if self.sums is not None and not self.pixels:
            raise EmptyRecordFileError("there is no image to measure", path=self.path)
        counts = self.counts
        values, occurrences = columns(counts.labels)
        return PackStatistics(
            path=self.path,
            bytes=self.bytes,
            records=self.records,
            payload_bytes=sum(size * count for size, count in counts.sizes.items()),
            skipped=self.skipped,
            sizes=counts.sizes_in_short(),
            kinds={kind: count for kind, count in counts.kinds.most_common() if count},
            labels=dict(sorted(counts.widths.items())),
            identities=self.identities,
            objects=int(occurrences.sum()) if self.is_detection else None,
            classes=ClassStatistics.of(values, occurrences),
            pixels=None
            if self.sums is None
            else _pixels(self.records, self.pixels, self.sums[0], self.sums[1]),
        )


def measure(
    path: str | os.PathLike[str],
    mean_std: bool = False,
    *,
    skip_errors: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **limits: int | None,
) -> Measured:
    """Count what `stats` tells of a pack, so that counts of several packs can be added.

    Parameters, errors and meaning are those of `stats`.
    """
    limits = complete_limits(limits)
    with SourcePack(path, skip_errors) as pack:
        counts = RecordCounts()
        sums = np.zeros((2, len(CHANNELS)))
        pixels = 0
        good = np.ones(len(pack), bool)

        def look(number: int, content: memoryview) -> tuple[str, tuple[int, np.ndarray] | None]:
            kind = kind_of(content)
            if not mean_std:
                return kind, None
            try:
                return kind, channel_sums(content, **limits)
            except ImageDecodeError as error:
                if skip_errors:
                    return kind, (0, np.zeros_like(sums))
                raise ImageDecodeError(error.reason, **pack.place(number)) from None

        def tell(done: int) -> None:
            if progress is not None:
                progress(done, len(pack))

        for first, results in pass_over(pack, look, threads, tell):
            for number, (kind, measured) in enumerate(results, first):
                if measured is not None:
                    pixels += measured[0]
                    sums += measured[1]
                    good[number] = measured[0] > 0
                if good[number]:
                    counts.add(kind)
        rows = np.flatnonzero(good)
        flags = pack.flags[rows[pack.headed[rows]]]
        labels = pack.labels.values[pack.labels.numbers_of(rows)]
        counts.add_columns(pack.sizes[rows], np.maximum(flags, 1), labels)
        return Measured(
            path=pack.path,
            bytes=len(pack.data),
            records=len(rows),
            skipped=len(pack.problems) + len(pack) - len(rows),
            counts=counts,
            identities=pack.identities,
            is_detection=pack.is_detection,
            pixels=pixels,
            sums=sums if mean_std else None,
        )


def _pixels(images: int, pixels: int, sums: np.ndarray, squares: np.ndarray) -> PixelStatistics:
    means = [float(value) / pixels for value in sums]
    # Sums of whole numbers: exact as long as they stay below 2**53.
    variances = [
        max(float(square) / pixels - mean * mean, 0.0)
        for square, mean in zip(squares, means, strict=True)
    ]
    red, green, blue = means
    deviations = [math.sqrt(value) for value in variances]
    return PixelStatistics(
        images, pixels, (red, green, blue), (deviations[0], deviations[1], deviations[2])
    )


def _counts(counter: dict[str, int]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in counter.items())
