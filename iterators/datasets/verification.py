"""Verification sets of face recognition as a data set: pairs of images, and whether they match."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from recordio.bytes.remote.settings import RemoteOptions
from recordio.errors import RecordIOError
from recordio.formats.decode import decode_image
from recordio.keywords.options import accepts, option
from recordio.verification import VerificationSet

from ..core.indexing import resolve_rows
from ..images.limit_options import LimitOptions
from .dataset_base import DatasetMixin
from .decoding import DecodingThreads, ThreadOptions

if TYPE_CHECKING:
    from ..core.keywords import VerificationPairsKeywords


@dataclass(frozen=True, kw_only=True)
class VerificationPairsOptions(ThreadOptions, LimitOptions, RemoteOptions):
    """The keywords of `VerificationPairs`."""

    positional = "path"

    path: str | os.PathLike[str] = option(
        kind="path", text="The set, such as ``lfw.bin``, or its URL."
    )


@accepts(VerificationPairsOptions)
class VerificationPairs(DatasetMixin):
    """Pairs of faces, on which face recognition is measured: LFW, CFP-FP, AgeDB-30 and others.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    images : sequence of bytes
        The encoded images; 2 i and 2 i + 1 are pair i.
    same : numpy.ndarray of bool
        For each pair whether both images show one person.

    Raises
    ------
    VerificationFileError
        If the file is no such set, is damaged, or names anything that would have to be run.
    ImageDecodeError
        When an image is read that cannot be decoded; `record` is its number.
    OSError
        If the file cannot be read.

    Notes
    -----
    The file is a pickle, which Python 2 or 3 wrote.  It is read as data: nothing in it is run, and
    it takes no more memory than a few times its size.  An example is ``(first, second, same)``: two
    upright images of uint8, (height, width, 3), red first, and a bool.  Images stay encoded until
    they are used; those of a slice or a batch are decoded by several threads.

    Examples
    --------
    >>> import pathlib, pickle, recordio, tempfile
    >>> image = recordio.encode_image(np.zeros((4, 6, 3), np.uint8), "png")
    >>> path = pathlib.Path(tempfile.mkdtemp(), "lfw.bin")
    >>> _ = path.write_bytes(pickle.dumps(([image] * 4, [True, False])))
    >>> pairs = VerificationPairs(path)
    >>> first, second, same = pairs[1]
    >>> len(pairs), first.shape, same, pairs.same.tolist()
    (2, (4, 6, 3), False, [True, False])
    """

    def __init__(self, *values: Any, **keywords: Unpack[VerificationPairsKeywords]) -> None:
        options = VerificationPairsOptions.of(type(self).__name__, keywords, values)
        self._options = options
        self._limits: dict[str, Any] = options.limits
        self._threads = DecodingThreads(options.threads)
        self._set = VerificationSet(options.path, options.remote)
        self.images: Sequence[bytes] = self._set.images
        self.same: np.ndarray = self._set.same

    def __len__(self) -> int:
        return len(self._set)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self._set.path}: {len(self)} pairs, "
            f"{int(self.same.sum())} of them the same>"
        )

    def get_example(self, i: Any) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return both images of a pair, and whether they show one person."""
        return VerificationPairs.__getitems__(self, [i])[0]  # a subclass's may call this method

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several pairs, decoded by several threads."""
        rows = [resolve_rows(i, len(self)) for i in indices]
        numbers = [2 * row + side for row in rows for side in (0, 1)]
        images = self._threads.map(self._decode, numbers)
        same = [bool(self.same[row]) for row in rows]
        return list(zip(images[::2], images[1::2], same, strict=True))

    def _decode(self, number: int) -> np.ndarray:
        try:
            return decode_image(self.images[number], **self._limits)
        except RecordIOError as error:
            raise error.at(path=self._set.path, record=number) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (type(self), self._options)


def _opened(kind: type[VerificationPairs], options: VerificationPairsOptions) -> VerificationPairs:
    return kind(**vars(options))
