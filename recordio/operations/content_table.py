"""Hashes of the contents of packs and of their pictures, in tables, and which of them are the same.

Contents themselves are not kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Unpack

import numpy as np

from ..errors import ImageDecodeError
from ..formats.image_header import complete_limits
from ..formats.table import IMAGE_KINDS, kind_of
from ..packs.scanned_pack import ScannedPack
from .near import groups_of, near_pairs
from .options import Limits, Progress
from .passes import label_bytes, pass_over
from .pictures import picture_hash

HASH_BYTES = 16
#: Facts about a record besides the hash of its content.
ROW = np.dtype(
    [
        ("number", "<i8"),  # in the pack
        ("key", "<i8"),
        ("labels", "<u8"),  # hash of all labels
        ("label", "<f4"),  # the first class label
        ("picture", "<u8"),
        ("has_picture", bool),
        ("damaged", bool),
    ]
)


def hash_of(content: Any) -> bytes:
    """Hash some bytes: 128 bits of BLAKE2b."""
    return hashlib.blake2b(content, digest_size=HASH_BYTES).digest()


def word_of(content: Any) -> int:
    """Return the first 64 of these bits, as a number."""
    return int.from_bytes(hash_of(content)[:8], "little")


class ContentTable:
    """Hashes of the contents of a pack, and of its pictures if these are compared.

    Every array has an entry for each record.  Records in `empty` have no content, and those in
    `damaged` are images that cannot be decoded.
    """

    def __init__(self, pack: ScannedPack, looks: bool, **limits: Unpack[Limits]) -> None:
        count = len(pack)
        self.pack: ScannedPack = pack
        self.looks: bool = looks
        self.limits: dict[str, int] = complete_limits(limits)
        self.contents: np.ndarray = np.zeros((count, HASH_BYTES // 8), np.uint64)
        self.pictures: np.ndarray = np.zeros(count, np.uint64)
        self.damaged: np.ndarray
        self.empty: np.ndarray
        self.has_picture: np.ndarray
        self.empty, self.has_picture, self.damaged = np.zeros((3, count), bool)

    def find(
        self,
        threads: int | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Read all records."""
        for first, hashes in pass_over(self.pack, self._look, threads, progress, cancelled):
            rows = slice(first, first + len(hashes))
            self.contents[rows] = np.frombuffer(b"".join(hashes), "<u8").reshape(-1, 2)
        for number in np.flatnonzero(self.damaged).tolist():
            self.pack.problem(number, "image", "the image cannot be decoded")

    def _look(self, number: int, content: memoryview) -> bytes:
        if not len(content):
            self.empty[number] = True
        elif self.looks and kind_of(content) in IMAGE_KINDS:
            try:
                self.pictures[number] = picture_hash(content, **self.limits)
                self.has_picture[number] = True
            except ImageDecodeError as error:
                if not self.pack.skip_errors:
                    raise ImageDecodeError(error.reason, **self.pack.location(number)) from None
                self.damaged[number] = True
        return hash_of(content)

    @property
    def alone(self) -> np.ndarray:
        """Records that are never duplicates: bool, (records,)."""
        return self.empty | self.damaged

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Return what is known of some records: `ROW`, (records,)."""
        pack = self.pack
        rows = np.empty(len(numbers), ROW)
        rows["number"] = numbers
        rows["key"] = pack.keys[numbers]
        rows["labels"] = [word_of(label_bytes(pack, number)) for number in numbers.tolist()]
        rows["label"] = pack.labels.first_of(numbers)
        rows["picture"] = self.pictures[numbers]
        rows["has_picture"] = self.has_picture[numbers]
        rows["damaged"] = self.damaged[numbers]
        return rows


def first_of_same(contents: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Find for each content the least number with the same one.

    >>> contents = np.array([[1, 2], [1, 3], [1, 2]], np.uint64)
    >>> first_of_same(contents, np.array([9, 8, 7])).tolist()
    [7, 8, 7]
    """
    order = np.lexsort((numbers, *contents.T))
    hashes = contents[order]
    new = np.ones(len(order), bool)
    new[1:] = (hashes[1:] != hashes[:-1]).any(-1)
    first = np.empty_like(numbers)
    first[order] = numbers[order[new]][np.cumsum(new) - 1]
    return first


def first_of_similar(
    pictures: np.ndarray,
    has_picture: np.ndarray,
    first: np.ndarray,
    distance: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> np.ndarray:
    """Find for each record the first of its group, with pictures that look alike.

    `first` is the first record with the same content, and `distance` the number of bits in which
    the hashes of two pictures may differ.
    """
    looked = np.flatnonzero(has_picture & (first == np.arange(len(first))))
    hashes, owners = np.unique(pictures[looked], return_inverse=True)
    leaders = np.full(len(hashes), len(first))
    np.minimum.at(leaders, owners, looked)

    def pairs() -> Iterator[np.ndarray]:
        for some in near_pairs(hashes, distance):
            if cancelled():
                raise KeyboardInterrupt
            yield some

    groups = groups_of(len(hashes), pairs())
    least = np.full(len(hashes), len(first))
    np.minimum.at(least, groups, leaders)
    result = first.copy()
    result[looked] = least[groups[owners]]
    return result[first]
