"""The content of a record: its image header, and the kind of what follows, by its first bytes.

No pixel is decoded here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recordio.errors import RecordHeaderError
from recordio.formats.table import kind_of
from recordio.header import WIDE_HEADER, IRHeader, unpack


class Payload(NamedTuple):
    """A record taken apart: its header, if it seems to have one, the content, and the kind of that.

    Kinds are ``"jpeg"``, ``"png"``, ... ``"npy"``; ``"empty"``; or ``"other"``.
    """

    header: IRHeader | None
    content: memoryview
    kind: str


def read_payload(record: Any) -> Payload:
    r"""Take a record apart.

    Nothing in the format says whether a record begins with an image header.  It is believed when
    known content follows it, when the last 8 of its 24 bytes are zero, as most tools write them, or
    when its labels look like labels; but not when the record as a whole is known content.
    `rests_on_labels` tells when there are only the labels to go by.

    >>> from recordio import pack
    >>> payload = read_payload(pack(IRHeader(0, 3.0, 7, 0), b"\xff\xd8\xff"))
    >>> payload.header.id, payload.kind
    (7, 'jpeg')
    >>> read_payload(b"a line of text, which has no header").header is None
    True
    """
    view = memoryview(record)
    whole = kind_of(view)
    try:
        header, content = unpack(view)
    except RecordHeaderError:
        return Payload(None, view, whole)
    kind = kind_of(content)
    payload = Payload(header, content, kind)
    if kind == "other" and has_wide_header(view):
        return Payload(None, view, whole)
    if whole == "other" and (not rests_on_labels(payload) or look_like_labels(header.label)):
        return payload
    return Payload(None, view, whole)


#: What to do about `has_wide_header`, for errors.
WIDE = (
    "its header looks like one of 32 bytes with labels of 64 bits, which `recordio narrow` turns "
    "into the usual ones and recordio.unpack(record, label_dtype='float64') reads"
)


def has_wide_header(record: Any) -> bool:
    r"""Tell whether a record seems to begin with a header of 32 bytes, before known content.

    >>> import struct
    >>> image = b"\xff\xd8\xff"
    >>> has_wide_header(struct.pack("IdQQ", 0, 3, 7, 0) + image)
    True
    >>> from recordio import pack
    >>> has_wide_header(pack((0, 3, 7, 0), image))
    False
    """
    if len(record) <= WIDE_HEADER.size:
        return False
    flag, unused, _, _, id2 = WIDE_HEADER.unpack_from(record)
    begin = WIDE_HEADER.size + 8 * flag
    return unused == id2 == 0 and kind_of(record[begin : begin + 16]) not in ("other", "empty")


def rests_on_labels(payload: Payload) -> bool:
    """Tell whether a header is believed only because its labels look like labels."""
    if payload.header is None or payload.header.id2 == 0:
        return False
    return payload.kind in ("other", "empty")


def look_like_labels(values: Any) -> bool:
    """Tell whether 32-bit floats are 0, NaN, or of a size that labels have; integers are not.

    >>> look_like_labels([0, -1, 0.25, 1e6])
    True
    >>> look_like_labels(np.array([7], "<i4").view("<f4")), look_like_labels(1e20)
    (False, False)
    """
    sizes = np.abs(np.asarray(values, np.float32))
    usual = (sizes >= 2**-24) & (sizes <= 2**24)
    return bool((usual | (sizes == 0) | np.isnan(sizes)).all())
