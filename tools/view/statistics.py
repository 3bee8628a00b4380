"""The page with counts of a pack, made in the background: classes, formats and sizes.

Memory holds counts only.  Blocks of records are visited in an order that spreads over the file, so
that what is shown after a tenth of the time is much like what is shown at the end.
"""

from __future__ import annotations

import collections
import contextlib
import math
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import ImageDecodeError
from recordio.formats.image_header import read_header
from recordio.frames.check import Report
from recordio.operations.statistics import RecordCounts
from recordio.packs.check import check_pack

from .lines import BLOCK, Background
from .pack import ShownPack, ShownRecord
from .site import Site, address, bytes_text, number_from

#: Classes on a page.
CLASSES = 100
#: More different labels than these are not told apart.
MOST_CLASSES = 1 << 20
#: Shares of a golden spiral lie far from one another, however many there are.
GOLDEN = (math.sqrt(5) - 1) / 2
MOST_BARS = 24
#: Widths and heights are counted in steps of so many pixels, ratios and bytes of so many an octave.
PIXELS = 8
OCTAVE = 8


class Bar(NamedTuple):
    """Bar of a histogram."""

    text: str
    records: int
    where: str  # the condition that the records in it fulfil


class Distribution(NamedTuple):
    """Histogram."""

    title: str
    bars: list[Bar]
    most: int


class Statistics(Background):
    """Counts of a pack."""

    def __init__(self, pack: ShownPack) -> None:
        super().__init__()
        self.pack = pack
        self.done = self.images = self.damaged = 0  # records
        self.counts = RecordCounts(MOST_CLASSES)
        self._fine: dict[str, collections.Counter[int]] = {
            name: collections.Counter() for name in ("width", "height", "ratio", "bytes")
        }
        self._bytes = 0  # of records, with their heads
        #: What `recordio check` says, where anything is damaged or not listed.
        self.report: Report | None = None

    @property
    def finished(self) -> bool:
        """True when nothing is left to count."""
        return self._thread is not None and not self.running

    @property
    def share(self) -> float:
        """Share of the pack that was looked at, 0 to 1."""
        total = self.pack.locations.count
        return 1.0 if self.finished else self.done / total if total else 0.0

    def work(self) -> None:
        """Count the records, and look for those that no position leads to."""
        locations = self.pack.locations
        count = locations.counted(lambda: self.pack.closing)
        if count is None:
            return
        kept = self.pack.sizes.has_sizes()
        blocks = -(-count // BLOCK)
        step = max(round(blocks * GOLDEN), 1)
        while math.gcd(step, blocks) > 1:
            step += 1
        for turn in range(blocks):
            first = turn * step % blocks * BLOCK
            for start in range(first, first + BLOCK, 256):
                if self.pack.closing:
                    return
                stop = min(start + 256, first + BLOCK)
                records = self.pack.records(locations.read(start, stop))
                if kept:
                    sizes = self.pack.sizes.of(start, locations.table(start, stop))
                else:
                    sizes = np.array([_sizes_of(record) for record in records]).reshape(-1, 2)
                self._add(records, sizes)
        lists_all = self.pack.samples is not None or self._bytes == self.pack.size
        if self.damaged or not lists_all:
            self.report = check_pack(self.pack.opened, progress=self._tell)

    def _tell(self, done: int, total: int) -> None:
        if self.pack.closing:
            raise KeyboardInterrupt

    def _add(self, records: list[ShownRecord], sizes: np.ndarray) -> None:
        with self._lock:
            self.done += len(records)
            self.counts.add(
                [record.kind for record in records],
                labels=[label for record in records for label in _classes_of(record)],
            )
            for record, (width, height) in zip(records, sizes.tolist(), strict=True):
                if record.damage:
                    self.damaged += 1
                    continue
                self._bytes += record.end - record.offset
                self._fine["bytes"][_octave(len(record.content))] += 1
                if record.is_image and width == width:
                    self.images += 1
                    self._fine["width"][int(width) // PIXELS] += 1
                    self._fine["height"][int(height) // PIXELS] += 1
                    self._fine["ratio"][_octave(width / height)] += 1

    # -- what is shown --------------------------------------------------------------------------

    def classes(self, first: int, count: int, by: str = "count") -> list[tuple[float, str, int]]:
        """Return label, name and number of records of some classes: largest first, or by label."""
        with self._lock:
            labels = list(self.counts.labels.items())
        labels.sort(key=(lambda item: -item[1]) if by == "count" else (lambda item: item[0]))
        return [
            (label, self.pack.class_name(label), records)
            for label, records in labels[first : first + count]
        ]

    def distributions(self) -> list[Distribution]:
        """Return histograms of sizes, ratios and bytes, as far as there are any."""
        with self._lock:
            fine = {name: dict(counts) for name, counts in self._fine.items()}
        titles = {
            "width": "Width in pixels",
            "height": "Height in pixels",
            "ratio": "Width to height",
            "bytes": "Bytes of the content",
        }
        bars = {name: _bars(name, counts) for name, counts in fine.items()}
        return [
            Distribution(title, bars[name], max(bar.records for bar in bars[name]))
            for name, title in titles.items()
            if bars[name]
        ]


def _sizes_of(record: ShownRecord) -> tuple[float, float]:
    with contextlib.suppress(ImageDecodeError):
        width, height = read_header(record.content).size if record.is_image else (0, 0)
        if width and height:
            return width, height
    return math.nan, math.nan


def _classes_of(record: ShownRecord) -> list[float]:
    if record.objects is not None:
        return record.objects[:, 0].tolist()
    label = record.labels[:1]
    return label if label and label[0] == label[0] else []


def _octave(value: float) -> int:
    return math.floor(math.log2(max(value, 1e-9)) * OCTAVE + 1e-9) if value else -(1 << 10)


def _bars(name: str, counts: dict[int, int]) -> list[Bar]:
    """Put steps next to one another together, until there are few enough of them."""
    if not counts:
        return []
    low, high = min(counts), max(counts)
    if name in ("ratio", "bytes"):
        low = max(low, min((n for n in counts if n > -(1 << 10)), default=low))
    merged = 1
    while high // merged - low // merged + 1 > MOST_BARS:
        merged *= 2
    steps = np.zeros(high // merged - low // merged + 1, np.int64)
    for step, count in counts.items():
        steps[max(step // merged - low // merged, 0)] += count
    bars = []
    for number, count in enumerate(steps.tolist(), low // merged):
        text, where = _named(name, number * merged, (number + 1) * merged)
        bars.append(Bar(text, count, where))
    return bars


def _named(name: str, begin: int, end: int) -> tuple[str, str]:
    """Return a step for people, and as a condition."""
    if name in ("width", "height"):
        first, last = begin * PIXELS, end * PIXELS - 1
        return f"{first} to {last}", f"{first} <= {name} <= {last}"
    low, high = 2 ** (begin / OCTAVE), 2 ** (end / OCTAVE)
    if name == "bytes":
        first, last = math.ceil(low - 1e-6), math.ceil(high - 1e-6) - 1
        if first >= last:
            return bytes_text(first), f"bytes == {first}"
        return f"{bytes_text(first)} to {bytes_text(last)}", f"{first} <= bytes <= {last}"
    where = f"width >= {low:.6g} * height and width < {high:.6g} * height"
    return f"{low:.2f} to {high:.2f}", where


def numbers(site: Site, request: Any) -> Any:
    """Show classes, formats and sizes; counting begins when the page is opened first."""
    pack = site.pack(request)
    statistics = site.kept(Statistics, pack)
    statistics.start()
    finished = statistics.finished  # before anything is looked at: a page that says so has it all
    by = "label" if request.query_params.get("by") == "label" else "count"
    at = number_from(request, "at", 0)
    classes = statistics.classes(at, CLASSES + 1, by)
    here = ("pack", pack.name, "numbers")
    return site.page(
        "numbers",
        pack=pack,
        title=f"{pack.name}, numbers",
        statistics=statistics,
        finished=finished,
        by=by,
        classes=classes[:CLASSES],
        most=max((count for _, _, count in statistics.classes(0, 1)), default=1),
        distributions=statistics.distributions(),
        previous=address(*here, by=by, at=max(at - CLASSES, 0) or "") if at else "",
        next=address(*here, by=by, at=at + CLASSES) if len(classes) > CLASSES else "",
    )
