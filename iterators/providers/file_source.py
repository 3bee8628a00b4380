"""Image files instead of a record file: what a list names, with its labels.

Answers the same questions as `record_source` for images that lie in files of their own.  It reads
lists, never images: the image stage reads each file when its turn comes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import LabelError, RecordIOError
from recordio.lists import read_entries

from ..images.sources.record_source import file_versions
from ..images.sources.source import ImageFiles, Source

__all__ = [
    "ImageFileSource",
    "floor_part",
    "listed_images",
    "listed_items",
    "read_image_list",
]


class ImageFileSource:
    """Image files, each with an id and labels.

    Parameters
    ----------
    name : str
        What messages call the list.
    images : tuple of (list of str, numpy.ndarray of uint64, numpy.ndarray of float32)
        Paths, ids and labels ``(n, label_width)``, as `read_image_list` returns them.
    root : str or os.PathLike
        Folder that the paths are relative to; empty for the working directory.

    Raises
    ------
    ValueError
        If there is no image.
    """

    identities: np.ndarray | None = None
    num_identities: int | None = None

    def __init__(
        self,
        name: str,
        images: tuple[list[str], np.ndarray, np.ndarray],
        root: str | os.PathLike[str] = "",
    ) -> None:
        self.name = name
        names, self._ids, self._labels = images
        if not names:
            raise ValueError(f"{name} names no image")
        # An absolute path stays what it is.
        self._paths = [os.path.join(root, item) for item in names]
        self._check = zlib.crc32("\n".join(names).encode("utf-8", "surrogateescape"))

    #: Whether images lie on servers.
    is_remote = False

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def members(self) -> list[ImageFileSource]:
        """Itself: the files are one pack."""
        return [self]

    @property
    def firsts(self) -> np.ndarray:
        """That it begins with image 0."""
        return np.zeros(1, np.int64)

    def bytes_source(self) -> Source:
        """What the image stage reads."""
        return ImageFiles(self._paths, self._ids, self._labels)

    def part(self, num_parts: int, part_index: int) -> range:
        """Images of one part; see `floor_part`."""
        return floor_part(len(self), num_parts, part_index)

    def blocks(self, nbytes: int) -> np.ndarray:
        """Refused: neighbours in a list are not neighbours on a disk."""
        raise ValueError(f"blocks of {nbytes} bytes need a record file: {self.name} lists files")

    def labels(
        self, listed: tuple[np.ndarray, ...] | None = None, on_error: str = "raise"
    ) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """First label of every image; none is without."""
        return self._labels[:, 0], {}

    def place_of(self, record: int) -> dict[str, Any]:
        """Where an image lies, as `RecordIOError` names it."""
        return {"path": self._paths[record], "record": record}

    def fingerprint(self) -> str:
        """Short text that tells this list from others; the files are not read."""
        check = zlib.crc32(self._ids.tobytes(), self._check)
        return f"{len(self)} images, check {zlib.crc32(self._labels.tobytes(), check):08x}"

    def version(self) -> str:
        """Short text that changes whenever the list of files or one of them does."""
        check = zlib.crc32(file_versions(self._paths), self._check)
        return f"{len(self)} images, check {check:08x}"


def floor_part(count: int, num_parts: int, part_index: int) -> range:
    """MXNet's rule for its Python iterators: equal parts, and a rest that belongs to none.

    Examples
    --------
    >>> [floor_part(5, 2, k) for k in range(2)]
    [range(0, 2), range(2, 4)]
    """
    size = count // num_parts
    return range(part_index * size, (part_index + 1) * size)


def read_image_list(
    path: str | os.PathLike[str], label_width: int, remote: RemoteSettings | None = None
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Images of a list file.

    Parameters
    ----------
    path : path
        Its lines are those of `recordio.lists.parse_line`, with `label_width` labels in each.
    label_width : int
    remote : RemoteSettings, optional
        How a URL is reached.

    Returns
    -------
    paths : list of str
    ids : numpy.ndarray of uint64
    labels : numpy.ndarray of float32, (n, label_width)

    Raises
    ------
    LabelError
        If a line has another number of labels, or something else where a number should be.
    """
    names, ids, rows = [], [], []
    for line, entry in read_entries(path, settings=remote):
        if len(entry.labels) != label_width:
            raise LabelError(
                f"the line has {len(entry.labels)} labels, label_width is {label_width}",
                path=path,
                line=line,
            )
        names.append(entry.path)
        ids.append(entry.id)
        rows.append(entry.labels)
    table = np.array(rows, np.float64).reshape(-1, label_width)
    return names, np.array(ids, np.uint64), _exactly(table)


def listed_images(
    images: Sequence[Any], label_width: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Images of a list in memory, whose ids are their places in it.

    Parameters
    ----------
    images : sequence
        Items ``[label, path]``, ``[label, label, ..., path]`` or ``[labels, path]``.
    label_width : int

    Returns
    -------
    paths, ids, labels
        As `read_image_list`.

    Raises
    ------
    TypeError
        If there is no sequence.
    LabelError
        If an item is none of these or has another number of labels.

    Examples
    --------
    >>> listed_images([[1, "a.jpg"], [[2], "b.jpg"]], 1)[2].tolist()
    [[1.0], [2.0]]
    """
    names, rows = listed_items(images)
    for number, numbers in enumerate(rows):
        if len(numbers) != label_width:
            raise LabelError(
                f"imglist: {images[number]!r} has {len(numbers)} labels, label_width is "
                f"{label_width}",
                record=number,
            )
    table = np.array(rows, np.float64).reshape(-1, label_width)
    return names, np.arange(len(names), dtype=np.uint64), _exactly(table)


def listed_items(images: Sequence[Any]) -> tuple[list[str], list[Sequence[float]]]:
    """Paths and labels, of any number, of a list in memory; as `listed_images`."""
    if isinstance(images, str) or not isinstance(images, Sequence):
        raise TypeError(f"imglist={images!r}: expected a sequence of [label, path]")
    names, rows = [], []
    for number, item in enumerate(images):
        try:
            *labels, name = item
            names.append(os.fspath(name))
            if not isinstance(names[-1], str) or not labels:
                raise TypeError
            rows.append(_numbers(labels[0] if len(labels) == 1 else labels))
        except (TypeError, ValueError):
            raise LabelError(
                f"imglist: expected [label, path] or [labels, path], found {item!r}", record=number
            ) from None
    return names, rows


def _numbers(labels: Any) -> Sequence[float]:
    """The labels of one image; raises if they are no numbers."""
    if isinstance(labels, (int, float)):  # what almost all are
        return (labels,)
    values = np.asarray(labels).ravel()
    if values.dtype.kind not in "biuf":
        raise TypeError
    return values.astype(np.float64).tolist()


def _exactly(labels: np.ndarray) -> np.ndarray:
    """The labels as float32, which whole numbers must survive."""
    rounded = labels.astype(np.float32)
    lost = (rounded != labels) & (labels == np.floor(labels))
    if lost.any():
        raise LabelError(
            f"the label {int(labels[lost][0])} is too large: labels are float32, which holds whole "
            "numbers up to 2**24"
        )
    return rounded
