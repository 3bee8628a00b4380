"""What a pack holds as a data set, in numbers: records, classes, formats, and its pixels.

Damage, the index and the shapes of images are what ``recordio info`` looks for.
"""

from __future__ import annotations

import collections
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..content import kind_of
from ..errors import EmptyRecordFileError, ImageDecodeError, LabelError
from ..image_size import complete_limits
from .passes import pass_over
from .pictures import channel_sums
from .source import SourcePack

__all__ = [
    "ClassStatistics",
    "Measured",
    "PackStatistics",
    "PixelStatistics",
    "measure",
    "sizes_in_short",
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


@dataclass
class Measured:
    """What was counted in one pack, or in several that are the parts of one.

    Attributes
    ----------
    path : str
    bytes, records, skipped : int
    sizes, widths, labels : tuple of numpy.ndarray
        Different sizes of records, numbers of labels and class labels, ascending, and how many
        records or objects have each.
    kinds : Counter of str
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
    sizes: tuple[np.ndarray, np.ndarray]
    widths: tuple[np.ndarray, np.ndarray]
    labels: tuple[np.ndarray, np.ndarray]
    kinds: collections.Counter[str]
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
        if len(self.labels[0]) and len(other.labels[0]) and self.is_detection != other.is_detection:
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
            _together(self.sizes, other.sizes),
            _together(self.widths, other.widths),
            _together(self.labels, other.labels),
            self.kinds + other.kinds,
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
        sizes, counts = self.sizes
        values, occurrences = self.labels
        return PackStatistics(
            path=self.path,
            bytes=self.bytes,
            records=self.records,
            payload_bytes=int((sizes.astype(np.int64) * counts).sum()),
            skipped=self.skipped,
            sizes=sizes_in_short(np.repeat(sizes, counts)),
            kinds={kind: count for kind, count in self.kinds.most_common() if count},
            labels=dict(zip(*(array.tolist() for array in self.widths), strict=True)),
            identities=self.identities,
            objects=int(occurrences.sum()) if self.is_detection else None,
            classes=ClassStatistics.of(values, occurrences),
            pixels=None
            if self.sums is None
            else _pixels(self.records, self.pixels, self.sums[0], self.sums[1]),
        )


def _counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, counts = np.unique(values, return_counts=True)
    return found, counts


def _together(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The counts of different values, added up."""
    values, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, places, np.concatenate([one[1], other[1]]))
    return values, counts


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
        kinds: collections.Counter[str] = collections.Counter()
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
                kinds[kind] += int(good[number])
        rows = np.flatnonzero(good)
        flags = pack.flags[rows[pack.headed[rows]]]
        return Measured(
            path=pack.path,
            bytes=len(pack.data),
            records=len(rows),
            skipped=len(pack.problems) + len(pack) - len(rows),
            sizes=_counted(pack.sizes[rows]),
            widths=_counted(np.maximum(flags, 1)),
            labels=_counted(pack.labels.values[pack.labels.numbers_of(rows)]),
            kinds=kinds,
            identities=pack.identities,
            is_detection=pack.is_detection,
            pixels=pixels,
            sums=sums if mean_std else None,
        )


def sizes_in_short(sizes: np.ndarray) -> dict[str, float]:
    """Least, median and greatest of some sizes; nothing of none.

    Examples
    --------
    >>> sizes_in_short(np.array([4, 8, 9]))
    {'min': 4, 'median': 8.0, 'max': 9}
    """
    if not len(sizes):
        return {}
    return {"min": int(sizes.min()), "median": float(np.median(sizes)), "max": int(sizes.max())}


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
