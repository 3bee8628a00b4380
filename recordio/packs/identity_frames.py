"""The records of a new face-recognition pack that list its identities.

Record 0 holds the keys ``[first, end)`` of the identity records, and each of these the keys of the
images of one identity.
"""

from __future__ import annotations

import numpy as np

from ..frames.head import FRAMED_HEADER, HEAD, MAGIC_WORD
from .labels import MOST_CLASSES

#: The frame of a record without content and with two labels.
FRAME = np.dtype([*FRAMED_HEADER.descr, ("labels", "<f4", 2)])


def face_keys(labels: np.ndarray, identities: int) -> tuple[np.ndarray, np.ndarray]:
    """Give images keys from 1 on, by their identities, so that those of one follow each other.

    Images of one identity keep their order, and some identities may have none.  Returns also the
    keys ``[first, end)`` of every identity: int64, (identities, 2).

    >>> keys, ranges = face_keys(np.array([1, 0, 1]), 2)
    >>> keys.tolist(), ranges.tolist()
    ([2, 1, 3], [[1, 2], [2, 4]])
    """
    if identities > MOST_CLASSES:
        raise ValueError(
            f"{identities} identities are too many for one pack: labels are 32-bit floats, which "
            f"tell at most {MOST_CLASSES} apart"
        )
    keys = np.empty(len(labels), np.int64)
    keys[np.argsort(labels, kind="stable")] = np.arange(1, len(labels) + 1)
    ends = 1 + np.cumsum(np.bincount(labels, minlength=identities))
    ranges = np.stack([np.append(1, ends[:-1]), ends], axis=1)
    return keys, ranges


def identity_frames(ranges: np.ndarray, images: int) -> tuple[bytes, bytes]:
    """Make the frames of record 0 and of the identity records, which come after all images.

    Keys from 2**24 on are rounded to 32-bit floats, as in the packs of InsightFace; `identities`
    finds out which were meant.

    >>> first, rest = identity_frames(np.array([[1, 2], [2, 4]]), 3)
    >>> len(first), len(rest), np.frombuffer(first, "<f4")[-2:].tolist()
    (40, 80, [4.0, 6.0])
    """
    begin = images + 1
    labels = np.concatenate([[[begin, begin + len(ranges)]], ranges])
    frames = np.zeros(len(labels), FRAME)
    frames["magic"], frames["lrec"] = MAGIC_WORD, FRAME.itemsize - HEAD.itemsize
    frames["flag"], frames["labels"] = 2, labels
    frames["id"] = np.append(0, np.arange(begin, begin + len(ranges)))  # the key
    return frames[0].tobytes(), frames[1:].tobytes()
