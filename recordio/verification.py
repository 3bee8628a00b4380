"""Verification sets for face recognition: ``lfw.bin``, ``cfp_fp.bin`` and others of InsightFace.

Each is a pickle of two lists: encoded images, of which two after each other are a pair, and for
each pair whether both show one person.  The pickle is read as data, see `pickled`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.bytes.mapping import check_kept
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import VerificationFileError
from recordio.pickled import Call, array_of, bytes_of, is_pickle, read_pickle

#: First bytes that tell a pickle from other files.
START = 4


def is_verification_set(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is a pickle, as verification sets are; looks at its first bytes."""
    return is_pickle(StoredFile.at(path).first_bytes(START))


class EncodedImages(Sequence[bytes]):
    """Encoded images in a file, each copied when it is asked for."""

    def __init__(self, items: Sequence[Any], view: memoryview, path: str) -> None:
        self._items, self._view, self._path = items, view, path

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, number: int) -> bytes: ...
    @overload
    def __getitem__(self, number: slice) -> list[bytes]: ...
    def __getitem__(self, number: int | slice) -> bytes | list[bytes]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        item = self._items[number]
        content = bytes_of(item)
        if isinstance(item, memoryview):
            check_kept(item, path=self._path, record=range(len(self))[number])
        return content


class VerificationSet:
    """Pairs of faces: two of `images` after each other, and whether they are the `same` person.

    Images that the file holds as they are stay in it until they are used.

    >>> import pathlib, pickle, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "lfw.bin")
    >>> _ = path.write_bytes(pickle.dumps(([b"one", b"two", b"three", b"four"], [True, False])))
    >>> pairs = VerificationSet(path)
    >>> len(pairs), pairs.same.tolist(), pairs.images[2:]
    (2, [True, False], [b'three', b'four'])
    """

    def __init__(
        self, path: str | os.PathLike[str], settings: RemoteSettings | None = None
    ) -> None:
        file = StoredFile.at(path)
        self.path: str = file.name
        view = file.map(settings)
        if not is_pickle(bytes(view[:START])):
            raise self._error("is no verification set: it is not a pickle")
        lists = read_pickle(view, self.path, VerificationFileError)
        check_kept(view, path=self.path)
        if not isinstance(lists, (tuple, list)) or len(lists) != 2:
            raise self._error("holds no two lists, of images and of pairs")
        images, same = lists
        if not isinstance(images, (list, tuple)):
            raise self._error(f"holds a {_kind(images)} where a list of images is expected")
        for number, item in enumerate(images):
            if not isinstance(item, (memoryview, bytes)):
                self._check_image(number, item)
        self.images: EncodedImages = EncodedImages(images, view, self.path)
        self.same: np.ndarray = self._flags(same)
        if len(images) != 2 * len(self.same):
            raise self._error(
                f"holds {len(images)} images and says of {len(self.same)} pairs whether they are "
                f"the same: there must be two images for each"
            )
        if not len(images):
            raise self._error("holds no pairs")

    def __len__(self) -> int:
        return len(self.same)

    def _error(self, reason: str, record: int | None = None) -> VerificationFileError:
        return VerificationFileError(f"the file {reason}", path=self.path, record=record)

    def _check_image(self, number: int, item: Any) -> None:
        """Refuse what is no encoded image; pixels do not say in which order their colours are."""
        try:
            if not isinstance(item, (Call, str)):
                raise ValueError(f"a {_kind(item)}")
            bytes_of(item)
        except ValueError as error:
            raise self._error(f"holds no encoded image here, but {error}", number) from None

    def _flags(self, same: Any) -> np.ndarray:
        """Return what is said of each pair: truths, or the numbers 0 and 1."""
        if isinstance(same, (list, tuple)):
            values = [_flag(value) for value in same]
            if None in values:
                number = values.index(None)
                raise self._error(f"says neither true nor false of pair {number}")
            return np.array(values, bool)
        try:
            array = array_of(same)
        except ValueError as error:
            raise self._error(f"holds no list of truths for its pairs, but {error}") from None
        wrong = (array != 0) & (array != 1)
        if array.ndim != 1 or wrong.any():
            raise self._error("holds an array for its pairs that is not a row of truths")
        return array.astype(bool)


def _kind(value: Any) -> str:
    return f"call of {value.name}" if isinstance(value, Call) else type(value).__name__


def _flag(value: Any) -> bool | None:
    """Return a truth; None of anything else."""
    if isinstance(value, Call):
        try:
            array = array_of(value)
        except ValueError:
            return None
        value = array.item() if array.size == 1 else None
    return bool(value) if isinstance(value, (bool, int)) and value in (0, 1) else None
