"""A pack as a data set, in numbers: records, classes, formats, and its pixels.

``recordio info`` looks for damage, the index and the shapes of images.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Unpack

import numpy as np

from ..errors import EmptyRecordFileError, ImageDecodeError
from ..formats.image_header import complete_limits
from ..formats.table import IMAGE_KINDS, kind_of
from ..keywords.checks import boolean
from ..keywords.functions import checked
from ..keywords.options import option
from ..packs.scanned_container import scan_pack
from ..packs.scanned_pack import ScannedPack
from .field_statistics import FieldStatistics, field_statistics
from .options import Limits, Path, SkipErrors, Threads, Told
from .passes import pass_over
from .pictures import channel_sums

CHANNELS = "rgb"


@dataclass(frozen=True)
class ClassStatistics:
    """The classes of a pack: its different class labels, and how many times each occurs.

    Attributes
    ----------
    classes : int
        Number of different labels.
    smallest, largest : float
        The smallest and the largest label.
    records_min, records_median, records_max : int, float, int
        Number of records with a label, or of objects in a detection pack.
    rarest, commonest : float
        The rarest and the most common label; the smallest one if several are.
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
        """Describe ascending labels by their counts; None without any or if one is not finite."""
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
        Number of decoded images.
    pixels : int
        Number of their pixels.
    mean, std : tuple of float
        Of red, green and blue, in the range 0 to 255.  Grey images count as three equal channels;
        alpha is left out.

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
        """Return mean and std as keywords of the iterators over images, to three decimals."""
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
    """Result of `stats`.

    Attributes
    ----------
    path : str
        The record file.
    bytes : int
        Size of the file.
    records : int
        Number of records, without those that list identities.
    payload_bytes : int
        Bytes in these records, with their image headers.
    skipped : int
        Damaged records that were left out.
    sizes : dict
        ``min``, ``median`` and ``max`` of the sizes of records, in bytes; empty without records.
    kinds : dict of str to int
        Number of records with each kind of content.
    image_sizes : dict
        ``width`` and ``height`` of upright images, in pixels, each with ``min``, ``median`` and
        ``max``; empty without images.
    labels : dict of int to int
        Number of records with each number of labels.
    identities : int or None
        Number of identities; None unless it is a face-recognition pack.
    objects : int or None
        Number of objects; None unless it is a detection pack.
    classes : ClassStatistics or None
        None without labels, or if one is not finite.
    pixels : PixelStatistics or None
        None without ``mean_std=True``.
    fields : dict of str to FieldStatistics
        By the name of each field: records, kinds of content, objects, and with ``mean_std=True``
        the pixels of each value, if ``PREFIX.fields.json`` describes it as masks.
    """

    path: str
    bytes: int
    records: int
    payload_bytes: int
    skipped: int
    sizes: dict[str, float]
    kinds: dict[str, int]
    image_sizes: dict[str, dict[str, float]]
    labels: dict[int, int]
    identities: int | None
    objects: int | None
    classes: ClassStatistics | None
    pixels: PixelStatistics | None
    fields: dict[str, FieldStatistics] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all attributes for JSON, and ``keywords`` among the pixels."""
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
            lines.append(("content", in_words(self.kinds)))
        if self.image_sizes:
            sides = [
                "{0} {min} to {max}, median {median:g}".format(name, **numbers)
                for name, numbers in self.image_sizes.items()
            ]
            lines.append(("images", "; ".join(sides)))
        if self.labels:
            widths = {f"{width} each": count for width, count in self.labels.items()}
            lines.append(("labels", in_words(widths)))
        if self.identities is not None:
            lines.append(("identities", f"{self.identities}; a face-recognition pack"))
        if self.objects is not None:
            lines.append(("objects", f"{self.objects}; a detection pack"))
        if (classes := self.classes) is not None:
            lines.append(
                ("classes", f"{classes.classes}, from {classes.smallest:g} to {classes.largest:g}")
            )
            per_class = (
                f"{classes.records_min} (class {classes.rarest:g}) to {classes.records_max} "
                f"(class {classes.commonest:g}) of each, median {classes.records_median:g}"
            )
            lines.append(("", per_class))
        if self.pixels is not None:
            lines.append(("pixels", f"{self.pixels.pixels} in {self.pixels.images} images"))
            lines.append(("", str(self.pixels)))
        for name, counts in self.fields.items():
            first, *rest = counts.lines()
            lines += [("field", f"{name}, {first}"), *(("", line) for line in rest)]
        return "\n".join(f"{topic:<12}{text}" for topic, text in lines)


MeanStd = Annotated[
    bool,
    option(
        kind="bool",
        text="""Decode every image for mean and standard deviation of each channel, and count the
        pixels of each value of masks.  The numbers do not depend on the number of threads.""",
        check=boolean,
    ),
]


@checked
def stats(
    path: Path,
    mean_std: MeanStd = False,
    *,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    progress: Told = None,
    **limits: Unpack[Limits],
) -> PackStatistics:
    """Count the records of a pack by class and kind, and measure their pixels.

    Records that the index does not list are not counted.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackStatistics

    Raises
    ------
    RecordIOError
        If a record or the index is damaged, or the pack is missing.
    ImageDecodeError
        With `mean_std`, if the content of a record cannot be decoded as an image.
    EmptyRecordFileError
        With `mean_std`, if there is no image.
    ValueError
        If `threads` or a limit is out of range.
    OSError
        If a file cannot be read.

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
    >>> counts = stats(path, mean_std=True)
    >>> counts.records, counts.kinds, counts.classes.classes, counts.classes.records_max
    (3, {'png': 3}, 2, 2)
    >>> print(counts.pixels)
    mean_r=10.667, mean_g=20, mean_b=30, std_r=0.471, std_g=0, std_b=0
    """
    all_limits = complete_limits(limits)
    counts = RecordCounts()
    pixels, sums = 0, np.zeros((2, len(CHANNELS)))
    with scan_pack(path, skip_errors) as pack:

        def look(number: int, content: memoryview) -> tuple[str, int, Any]:
            kind = kind_of(content)
            if not mean_std:
                return kind, 1, 0
            try:
                return kind, *channel_sums(content, **all_limits)
            except ImageDecodeError as error:
                if skip_errors:
                    return kind, 0, 0
                raise ImageDecodeError(error.reason, **pack.location(number)) from None

        kinds: list[str] = []
        good = np.ones(len(pack), bool)
        for first, results in pass_over(pack, look, threads, progress):
            kinds += [kind for kind, size, _ in results if size]
            if mean_std:
                good[first : first + len(results)] = [size > 0 for _, size, _ in results]
                pixels += sum(size for _, size, _ in results)
                sums += sum(measured for _, _, measured in results)
        rows = np.flatnonzero(good)
        widths = np.maximum(pack.flags[rows[pack.headed[rows]]], 1)
        labels = pack.labels.values[pack.labels.numbers_of(rows)]
        counts.add(kinds, pack.sizes[rows], widths, labels)
        if mean_std and not pixels:
            raise EmptyRecordFileError("there is no image to measure", path=pack.path)
        values, occurrences = counts.classes()
        return PackStatistics(
            path=pack.path,
            bytes=pack.bytes,
            records=len(rows),
            payload_bytes=sum(size * count for size, count in counts.sizes.items()),
            skipped=len(pack.problems) + len(pack) - len(rows),
            sizes=counts.sizes_in_short(),
            kinds=dict(counts.kinds.most_common()),
            image_sizes=_image_sizes(pack, rows) if counts.kinds.keys() & IMAGE_KINDS else {},
            labels=dict(sorted(counts.widths.items())),
            identities=pack.identities,
            objects=int(occurrences.sum()) if pack.is_detection else None,
            classes=ClassStatistics.of(values, occurrences),
            pixels=_pixels(len(rows), pixels, *sums) if mean_std else None,
            fields={
                name: field_statistics(pack, name, mean_std, skip_errors, threads, all_limits)
                for name in pack.field_names
            },
        )


class RecordCounts:
    """Counts of records as they come: kinds of content, sizes, numbers of labels, and labels.

    Memory holds a number for each different value, and no record.  More than `most_labels`
    different labels are not told apart.  `least` and `greatest` are those of all labels but NaN,
    infinite without any.

    >>> counts = RecordCounts(most_labels=2)
    >>> counts.add(["jpeg", "png"], [9, 4], [1, 1], [7.0, 3.0])
    >>> counts.add(["jpeg", "jpeg"], [8, 8], [1, 1], [8.0, 7.0])
    >>> counts.labels, counts.more_labels, counts.greatest, counts.sizes_in_short()
    (Counter({7.0: 2, 3.0: 1}), True, 8.0, {'min': 4, 'median': 8.0, 'max': 9})
    """

    def __init__(self, most_labels: int | None = None) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.sizes: collections.Counter[int] = collections.Counter()
        self.widths: collections.Counter[int] = collections.Counter()
        self.labels: collections.Counter[float] = collections.Counter()
        self.more_labels: bool = False
        self.least: float = math.inf
        self.greatest: float = -math.inf
        self._most_labels = math.inf if most_labels is None else most_labels

    def add(
        self,
        kinds: Iterable[str],
        sizes: np.ndarray | Sequence[int] = (),
        widths: np.ndarray | Sequence[int] = (),
        labels: np.ndarray | Sequence[float] = (),
    ) -> None:
        """Count some records: the values of all of them, as far as they are known."""
        self.kinds.update(kinds)
        self.sizes.update(_counted(sizes))
        self.widths.update(_counted(widths))
        for label, count in _counted(labels).items():
            self.least, self.greatest = min(self.least, label), max(self.greatest, label)
            label = label if label == label else math.nan
            if label in self.labels or len(self.labels) < self._most_labels:
                self.labels[label] += count
            else:
                self.more_labels = True

    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return different labels, ascending, and how often each occurs."""
        return _columns(self.labels)

    def sizes_in_short(self) -> dict[str, float]:
        """Return least, median and greatest size; nothing without any."""
        return _in_short(*_columns(self.sizes))


def _in_short(values: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Return least, median and greatest of whole numbers, ascending, and how often each occurs."""
    if not len(values):
        return {}
    ends = np.cumsum(counts)
    middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
    median = float(values[middle].mean())
    return {"min": int(values[0]), "median": median, "max": int(values[-1])}


def _counted(values: Any) -> dict[Any, int]:
    if not isinstance(values, np.ndarray):
        return collections.Counter(values)
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def _columns(counter: collections.Counter[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Order different values, ascending, and how often each occurs."""
    values = np.array(list(counter.keys()))
    order = np.argsort(values)
    return values[order], np.array(list(counter.values()), np.int64)[order]


def _image_sizes(pack: ScannedPack, rows: np.ndarray) -> dict[str, dict[str, float]]:
    """Say least, median and greatest of the sides of images, as far as they can be read."""
    sizes = pack.image_sizes[rows].astype(np.int64)
    sizes = sizes[sizes.min(1) > 0]
    sides = zip(("width", "height"), sizes.T, strict=True)
    return {
        name: _in_short(*np.unique(side, return_counts=True)) for name, side in sides if len(side)
    }


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


def in_words(counter: dict[str, int]) -> str:
    """Say how many there are of each."""
    return ", ".join(f"{count} x {name}" for name, count in counter.items())
