"""`recordio info` of a verification set of face recognition: its pairs and images, in numbers."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.errors import RecordIOError
from recordio.formats.table import kind_of
from recordio.operations.statistics import in_words
from recordio.verification import VerificationSet

from .console import progress_bar
from .payloads import describe

SHOWN_SHAPES = SHOWN_PROBLEMS = 5


@dataclass
class PairsInfo:
    """Numbers about a verification set."""

    path: str
    bytes: int
    pairs: int
    same: int  # pairs that show one person
    images: int
    #: ``min``, ``median`` and ``max`` bytes of an image.
    sizes: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if no damage was found."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return asdict(self)


def collect_pairs(
    path: str, progress: bool | None = None, cancelled: Callable[[], bool] = lambda: False
) -> PairsInfo:
    """Look at the header of every image; none is decoded."""
    pairs = VerificationSet(path)
    count = len(pairs.images)
    same = int(pairs.same.sum())
    info = PairsInfo(pairs.path, StoredFile.at(path).size(), len(pairs), same, count)
    kinds: collections.Counter[str] = collections.Counter()
    shapes: collections.Counter[str] = collections.Counter()
    sizes = np.empty(count, np.int64)
    with progress_bar(count, os.path.basename(info.path), "images", progress) as advance:
        for number, image in enumerate(pairs.images):
            if cancelled():
                raise KeyboardInterrupt
            advance(1)
            kind = kind_of(image)
            kinds[kind] += 1
            sizes[number] = len(image)
            try:
                shapes[describe(image, kind) or "no image"] += 1
            except RecordIOError as error:
                info.problems.append(f"image {number}: {error.reason}")
    low, middle, high = int(sizes.min()), float(np.median(sizes)), int(sizes.max())
    info.sizes = {"min": low, "median": middle, "max": high}
    info.kinds, info.shapes = dict(kinds.most_common()), dict(shapes.most_common())
    return info


def format_pairs(info: PairsInfo) -> str:
    """Return the numbers as text, a line for each topic."""
    sizes = info.sizes
    shapes = dict(list(info.shapes.items())[:SHOWN_SHAPES])
    if len(info.shapes) > SHOWN_SHAPES:
        shapes["others"] = sum(info.shapes.values()) - sum(shapes.values())
    problems = info.problems[:SHOWN_PROBLEMS]
    if len(info.problems) > SHOWN_PROBLEMS:
        problems.append(f"and {len(info.problems) - SHOWN_PROBLEMS} more")
    lines = [
        ("file", f"{info.path}, {info.bytes} bytes: a verification set of face recognition"),
        ("pairs", f"{info.pairs}: {info.same} the same, {info.pairs - info.same} different"),
        ("images", str(info.images)),
        ("sizes", f"{sizes['min']} to {sizes['max']} bytes, median {sizes['median']:.0f}"),
        ("content", in_words(info.kinds)),
        ("shapes", in_words(shapes)),
        *zip(["problems"] + [""] * len(problems), problems or ["none"], strict=False),
    ]
    return "\n".join(f"{topic:<12}{text}".rstrip() for topic, text in lines)
