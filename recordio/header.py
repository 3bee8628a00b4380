"""The image header in front of a record's content: labels and ids, packed as MXNet packs them.

Pure functions over bytes.
"""

from __future__ import annotations

import numbers
import struct
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import RecordHeaderError


class IRHeader(NamedTuple):
    """Header of an image record, stored in 24 bytes.

    Parameters
    ----------
    flag : int
        0 for one label, stored in the header; n > 0 for n labels after the header.
    label : float or array of float32, shape (n,)
        The label, or the labels.
    id : int
        Image id, 0 to 2**64 - 1.
    id2 : int
        High half of a 128-bit id, normally 0.

    Examples
    --------
    >>> IRHeader(0, 3.0, 7, 0)
    IRHeader(flag=0, label=3.0, id=7, id2=0)
    """

    flag: int
    label: Any
    id: int
    id2: int


#: Its fields for NumPy and for `struct`; `header.pxd` is the C side of this table.
FIELDS = [("<u4", "I"), ("<f4", "f"), ("<u8", "Q"), ("<u8", "Q")]
HEADER_FIELDS = np.dtype(
    [(name, kind) for name, (kind, _) in zip(IRHeader._fields, FIELDS, strict=True)]
)
HEADER = struct.Struct("<" + "".join(code for _, code in FIELDS))
#: Offsets of the label and the id in it, in bytes.
LABEL_OFFSET: int = HEADER_FIELDS.fields["label"][1]  # type: ignore[index]
ID_OFFSET: int = HEADER_FIELDS.fields["id"][1]  # type: ignore[index]
#: The same with labels of 64 bits, as ``struct.pack("IdQQ", ...)`` lays it out: 4 bytes are unused.
WIDE_HEADER = struct.Struct("<IIdQQ")


def pack(header: tuple[Any, ...], s: bytes | bytearray) -> bytes:
    """Put an image header in front of content.

    The rules are MXNet's, except for labels that are no numbers: MXNet stores NaN for None and
    parses strings; here both are errors.

    Parameters
    ----------
    header : IRHeader or tuple of 4
        ``(flag, label, id, id2)``.  A number as `label` is stored in the header and `flag` becomes
        0; a list, tuple or array (a 0-d one too) is flattened, stored as float32 after the header,
        and `flag` becomes the number of its elements.  The given `flag` is ignored.
    s : bytes or bytearray
        The content, such as an encoded image.

    Returns
    -------
    bytes
        The payload of a record.

    Raises
    ------
    TypeError
        If `header` has not 4 items, `label` is no number and no array of numbers, or `s` is a str.
    struct.error
        If an id is no integer in 0 to 2**64 - 1.
    OverflowError
        If `label` is a number too large for float32.

    Examples
    --------
    >>> pack(IRHeader(0, 3.0, 7, 0), b"image").hex(" ", -8)
    '0000000000004040 0700000000000000 0000000000000000 696d616765'
    >>> unpack(pack(IRHeader(0, [1, 2.5], 8, 0), b"image"))[0].flag
    2
    """
    _, label, *ids = IRHeader(*header)
    if isinstance(label, numbers.Number):
        return HEADER.pack(0, label, *ids) + s
    labels = _as_labels(label)
    return HEADER.pack(labels.size, 0.0, *ids) + labels.tobytes() + s


def _as_labels(label: Any) -> np.ndarray:
    labels = np.asarray(label)
    if labels.dtype.kind == "O" and all(isinstance(item, numbers.Real) for item in labels.flat):
        labels = labels.astype(np.float32)
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"a label must be a number or an array of numbers, not {label!r:.60}")
    return labels.astype("<f4")


def unpack(s: Any, label_dtype: str = "float32") -> tuple[IRHeader, Any]:
    """Split a record into image header and content.

    Parameters
    ----------
    s : bytes, bytearray or memoryview
        The payload of a record.
    label_dtype : {"float32", "float64"}
        The type in which labels are stored.  "float64" stands for the header of 32 bytes that some
        face-recognition code writes (`struct` format ``IdQQ``), with labels of 8 bytes.

    Returns
    -------
    header : IRHeader
        Its `label` is a float if `flag` is 0, else a read-only array of `label_dtype` and shape
        ``(flag,)``, a view of `s`.
    content : same type as `s`
        The rest, after header and labels.

    Raises
    ------
    RecordHeaderError
        If `s` is shorter than the header (24 bytes) and the labels that it announces.  It is both
        a ValueError and a struct.error, as MXNet's function raises either.  With "float64" also if
        the 4 unused bytes of the header are not zero.
    ValueError
        For another `label_dtype`.

    Examples
    --------
    >>> unpack(pack(IRHeader(0, 3.0, 7, 0), b"image"))
    (IRHeader(flag=0, label=3.0, id=7, id2=0), b'image')
    >>> unpack(struct.pack("IdQQ", 0, 16777217, 7, 0) + b"image", label_dtype="float64")
    (IRHeader(flag=0, label=16777217.0, id=7, id2=0), b'image')
    """
    if label_dtype != "float32":
        return _unpack_wide(s, label_dtype)
    size = memoryview(s).nbytes
    if size < HEADER.size:
        raise RecordHeaderError(
            f"{size} bytes are too few for an image header of {HEADER.size} bytes"
        )
    header = IRHeader._make(HEADER.unpack_from(s))
    if header.flag == 0:
        return header, s[HEADER.size :]
    return _with_labels(s, header, HEADER.size, np.dtype("<f4"))


def _unpack_wide(s: Any, label_dtype: str) -> tuple[IRHeader, Any]:
    """Split a record into a header of 32 bytes and content."""
    if label_dtype != "float64":
        raise ValueError(f"label_dtype={label_dtype!r}: expected 'float32' or 'float64'")
    size = memoryview(s).nbytes
    if size < WIDE_HEADER.size:
        raise RecordHeaderError(
            f"{size} bytes are too few for an image header of {WIDE_HEADER.size} bytes"
        )
    flag, unused, label, id, id2 = WIDE_HEADER.unpack_from(s)
    if unused:
        raise RecordHeaderError("its labels are not stored as float64: bytes 4 to 7 are not zero")
    header = IRHeader(flag, label, id, id2)
    if flag == 0:
        return header, s[WIDE_HEADER.size :]
    return _with_labels(s, header, WIDE_HEADER.size, np.dtype("<f8"))


def _with_labels(
    s: Any, header: IRHeader, begin: int, dtype: np.dtype[Any]
) -> tuple[IRHeader, Any]:
    """A header with the labels that follow it, and the content behind them."""
    size = memoryview(s).nbytes
    end = begin + dtype.itemsize * header.flag
    if size < end:
        raise RecordHeaderError(
            f"the header announces {header.flag} labels, but {size - begin} bytes follow",
            record_id=header.id,
        )
    labels = np.frombuffer(s, dtype, header.flag, begin)
    labels.flags.writeable = False
    return header._replace(label=labels), s[end:]
