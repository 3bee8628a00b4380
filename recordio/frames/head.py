"""The head of a record part for NumPy and Python; `words.h` and `frame.pxd` are its C side.

Eight bytes: the magic word, and a word with the flag above the length of the payload.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordio.frames.encoder import MAGIC, MAX_RECORD_LENGTH
from recordio.header import HEADER_FIELDS

#: Both words; `flag_of` and `length_of` take the second one apart.
HEAD = np.dtype([("magic", "<u4"), ("lrec", "<u4")])
#: The head of a record's first part with the image header behind it.
FRAMED_HEADER = np.dtype([*HEAD.descr, *HEADER_FIELDS.descr])
HEAD_WORDS = HEAD.itemsize // 4
MAGIC_WORD = int.from_bytes(MAGIC, "little")
LENGTH_BITS = MAX_RECORD_LENGTH.bit_length()
#: Flags of parts after which a record is whole: the only one, and the last one.
LAST_PARTS = (0, 3)


def flag_of(lrec: Any) -> Any:
    """Take the flag from the second word of a head, or of many: 0 for the only part of a record."""
    return lrec >> LENGTH_BITS


def length_of(lrec: Any) -> Any:
    """Take the bytes in the payload of a part from the second word of its head, or of many."""
    return lrec & MAX_RECORD_LENGTH


def part_at(data: bytes | memoryview, offset: int) -> tuple[int, bool] | None:
    """Read the end of the part at an offset, and whether its record ends; None without a head.

    >>> from recordio.frames.encoder import encode
    >>> part_at(encode(b"abcde"), 0), part_at(b"no head!", 0)
    ((16, True), None)
    """
    magic, lrec = np.frombuffer(data, HEAD, 1, offset)[0].item()
    if magic != MAGIC_WORD:
        return None
    end = offset + HEAD.itemsize + length_of(lrec) + 3 & ~3
    return end, flag_of(lrec) in LAST_PARTS
