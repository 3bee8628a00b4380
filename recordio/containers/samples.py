"""The samples of a file: the position of each content, its label and its name, as tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ..errors import RecordIOError
from ..notes import Notes

#: The size of a content that cannot be used; `ContainedSamples.faults` says why.
NO_CONTENT = -1
#: The fault of a sample that is a list of images, and has none.
NO_IMAGE = "the sample has no image"


@dataclass
class ContainedSamples:
    """The samples of one file, or of one folder, in its order.

    `offsets` and `sizes` say in bytes where each content lies in the file, or `offsets` are the
    numbers by which a library reads it; both are int64.  The labels of sample i are
    ``labels[starts[i] : starts[i + 1]]``, float32, without `starts` one for each.  `names` are
    those of the files that the contents were, UTF-8, one after the other, and sample i has
    ``names[name_starts[i] : name_starts[i + 1]]``.  `faults` say why samples cannot be used whose
    size is `NO_CONTENT`; `left_out` counts what was passed over, and `notes` say what of it
    somebody may miss.  The samples of `damage`, which are among the faults, stand for a stretch
    that cannot be read: what it held is not known, and the file cannot be opened unless errors are
    skipped.
    """

    offsets: np.ndarray
    sizes: np.ndarray
    labels: np.ndarray
    starts: np.ndarray | None = None
    names: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    name_starts: np.ndarray | None = None
    classes: dict[int, str] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    damage: dict[int, str] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    #: Whether samples have labels, and not the label 0 for want of one; None: it is not known.
    labelled: bool | None = None
    #: Which contents `Container.rows` reads, where the others are spans; None: all or none.
    packed: np.ndarray | None = None
    #: The CRC-32 of each content, uint32, where a container has them.
    checks: np.ndarray | None = None
    #: Where samples may have any number of images, as `Choice.several` asks for: sample i has the
    #: images ``image_starts[i] : image_starts[i + 1]``, which lie as contents do.  A content is the
    #: first one.
    image_starts: np.ndarray | None = None
    image_offsets: np.ndarray | None = None
    image_sizes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def of(
        cls,
        offsets: Sequence[int] | np.ndarray,
        sizes: Sequence[int] | np.ndarray,
        labels: Sequence[Sequence[float]],
        names: Sequence[str] | None = None,
        **more: Any,
    ) -> Self:
        """Make the tables of rows; a sample without labels has the label 0.

        >>> samples = ContainedSamples.of([0, 5], [5, 4], [[1], [2, 3]], ["a.jpg", "b.jpg"])
        >>> samples.labels_of(1).tolist(), samples.name_of(1)
        ([2.0, 3.0], 'b.jpg')
        """
        rows = [row if len(row) else (0.0,) for row in labels]
        counts = [len(row) for row in rows]
        starts = None
        if any(count != 1 for count in counts):
            starts = np.cumsum([0, *counts]).astype(np.int64)
        flat = np.array([value for row in rows for value in row], np.float32)
        samples = cls(
            np.asarray(offsets, np.int64), np.asarray(sizes, np.int64), flat, starts, **more
        )
        if names is not None:
            samples.set_names([name.encode("utf-8", "surrogateescape") for name in names])
        return samples

    def set_names(self, names: Sequence[bytes]) -> None:
        """Take the names of all samples."""
        self.names = np.frombuffer(b"".join(names), np.uint8)
        self.name_starts = np.zeros(len(names) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, names), np.int64, len(names)), out=self.name_starts[1:])

    def all_names(self) -> list[str]:
        """Return the names of all samples."""
        if self.name_starts is None:
            return [""] * len(self)
        data, edges = self.names.tobytes(), self.name_starts.tolist()
        return [
            data[first:end].decode("utf-8", "surrogateescape")
            for first, end in itertools.pairwise(edges)
        ]

    def label_starts(self) -> np.ndarray:
        """Return where the labels of each sample begin, and the end: int64, (n + 1,)."""
        return np.arange(len(self) + 1) if self.starts is None else self.starts

    def labels_of(self, row: int) -> np.ndarray:
        """Return the labels of one sample: float32."""
        first, end = (row, row + 1) if self.starts is None else self.starts[row : row + 2]
        return self.labels[first:end]

    def first_labels(self) -> np.ndarray:
        """Return the first label of every sample: float32."""
        return self.labels if self.starts is None else self.labels[self.starts[:-1]]

    def set_images(
        self, counts: np.ndarray, offsets: np.ndarray | None = None, sizes: Any = None
    ) -> None:
        """Take the images of samples that have any number, by default numbered through.

        Those without are of no use where one is needed.
        """
        self.image_starts = np.append(0, np.cumsum(counts)).astype(np.int64)
        total = int(self.image_starts[-1])
        self.image_offsets = np.arange(total) if offsets is None else offsets
        self.image_sizes = np.zeros(total, np.int64) if sizes is None else sizes
        filled = np.flatnonzero(counts > 0)
        self.offsets = self.image_starts[:-1] if offsets is None else self.offsets.copy()
        self.offsets[filled] = self.image_offsets[self.image_starts[:-1][filled]]
        self.sizes[filled] = self.image_sizes[self.image_starts[:-1][filled]]
        for row in np.flatnonzero(counts == 0).tolist():
            self.sizes[row] = NO_CONTENT
            self.faults.setdefault(row, NO_IMAGE)

    def images(self) -> ContainedSamples:
        """Return all images as samples without labels; the samples themselves have one each."""
        if self.image_starts is None or self.image_offsets is None or self.image_sizes is None:
            return self
        zeros = np.zeros(len(self.image_offsets), np.float32)
        return ContainedSamples(
            self.image_offsets, self.image_sizes, zeros, image_starts=self.image_starts
        )

    def name_of(self, row: int) -> str:
        """Return the path of the file that a content was, relative, with slashes; or ""."""
        if self.name_starts is None:
            return ""
        first, end = self.name_starts[row : row + 2].tolist()
        return bytes(self.names[first:end]).decode("utf-8", "surrogateescape")

    def check(self, row: int, end: int) -> None:
        """Raise RecordIOError for a sample that cannot be used, or that ends beyond the file."""
        size = int(self.sizes[row])
        if size == NO_CONTENT:
            raise RecordIOError(self.faults.get(row, "it has no content"))
        if int(self.offsets[row]) + size > end:
            raise RecordIOError(f"the file ends within it: {size} bytes are missing or fewer")
