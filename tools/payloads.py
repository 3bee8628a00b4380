"""What is in a record: its image header, the kind of its content, and a short description.

Content is recognised by its first bytes.  No pixel is decoded here, and nothing is written.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import ImageDecodeError, RecordHeaderError, RecordIOError
from recordio.header import IRHeader, unpack
from recordio.image_size import open_image

from .image_header import read_image_header
from .npy import decode_npy, is_sparse

__all__ = [
    "EXACT_IN_FLOAT32",
    "IMAGE_KINDS",
    "Payload",
    "check_content",
    "describe",
    "kind_of",
    "labels_of",
    "number_text",
    "numbers_text",
    "read_payload",
    "suffixes_of",
]

#: Kind, suffixes (the first is given to new files), and where which bytes must stand.
SIGNATURES: tuple[tuple[str, tuple[str, ...], tuple[tuple[int, bytes], ...]], ...] = (
    ("jpeg", (".jpg", ".jpeg", ".jpe"), ((0, b"\xff\xd8\xff"),)),
    ("png", (".png",), ((0, b"\x89PNG\r\n\x1a\n"),)),
    ("gif", (".gif",), ((0, b"GIF8"),)),
    ("webp", (".webp",), ((0, b"RIFF"), (8, b"WEBP"))),
    ("bmp", (".bmp",), ((0, b"BM"), (6, b"\0\0\0\0"))),
    ("tiff", (".tif", ".tiff"), ((0, b"II*\0"),)),
    ("tiff", (".tif", ".tiff"), ((0, b"MM\0*"),)),
    ("ppm", (".ppm", ".pnm"), ((0, b"P6\n"),)),
    ("pgm", (".pgm", ".pnm"), ((0, b"P5\n"),)),
    ("jpeg2000", (".jp2",), ((0, b"\0\0\0\x0cjP  \r\n"),)),
    ("npy", (".npy",), ((0, b"\x93NUMPY"),)),
)
IMAGE_KINDS = tuple(dict.fromkeys(kind for kind, _, _ in SIGNATURES if kind != "npy"))

BY_FIRST_BYTE = {
    first: [signature for signature in SIGNATURES if signature[2][0][1][0] == first]
    for first in {signature[2][0][1][0] for signature in SIGNATURES}
}

#: Every whole number up to this one, and down to its opposite, is a 32-bit float.
EXACT_IN_FLOAT32 = 1 << 24


class Payload(NamedTuple):
    """A record taken apart.

    Attributes
    ----------
    header : IRHeader or None
        None for a record that seems to have no image header.
    content : memoryview
        What follows the header.
    kind : str
        ``"jpeg"``, ``"png"``, ... ``"npy"``; ``"empty"``; or ``"other"``.
    """

    header: IRHeader | None
    content: memoryview
    kind: str


def kind_of(content: Any) -> str:
    r"""The kind of some bytes, by how they begin.

    Examples
    --------
    >>> kind_of(b"\xff\xd8\xff\xe0"), kind_of(b"text"), kind_of(b"")
    ('jpeg', 'other', 'empty')
    """
    if not len(content):
        return "empty"
    start = bytes(content[:16])
    for kind, _, marks in BY_FIRST_BYTE.get(start[0], ()):
        if all(start[place : place + len(mark)] == mark for place, mark in marks):
            return kind
    return "other"


def suffixes_of(kind: str) -> tuple[str, ...]:
    """The suffixes of files of some kind, the usual one first.

    Examples
    --------
    >>> suffixes_of("jpeg"), suffixes_of("other")
    (('.jpg', '.jpeg', '.jpe'), ('.bin',))
    """
    for known, suffixes, _ in SIGNATURES:
        if known == kind:
            return suffixes
    return (".bin",)


def read_payload(record: Any) -> Payload:
    r"""Take a record apart.

    Nothing in the format says whether a record begins with an image header.  It is believed when
    known content or nothing at all follows it, or when the last 8 of its 24 bytes are zero, as all
    tools write them; but not when the record as a whole is known content.

    Parameters
    ----------
    record : bytes-like
        The record.

    Returns
    -------
    Payload

    Examples
    --------
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
    if whole == "other" and (kind != "other" or header.id2 == 0):
        return Payload(header, content, kind)
    return Payload(None, view, whole)


def labels_of(header: IRHeader) -> list[float]:
    """The labels in a header, one or many.

    Examples
    --------
    >>> labels_of(IRHeader(0, 3.0, 7, 0)), labels_of(IRHeader(2, np.array([1, 2.5], "f4"), 7, 0))
    ([3.0], [1.0, 2.5])
    """
    return [header.label] if header.flag == 0 else header.label.tolist()


def number_text(value: float) -> str:
    """The shortest text of a 32-bit float that reads back as the same; whole numbers without a dot.

    Examples
    --------
    >>> [number_text(value) for value in (3.0, 0.10000000149011612, float("nan"), 1e20)]
    ['3', '0.1', 'nan', '1e+20']
    """
    if value.is_integer() and abs(value) <= EXACT_IN_FLOAT32 and str(value) != "-0.0":
        return str(int(value))
    return str(np.float32(value))


def numbers_text(array: np.ndarray) -> list[str]:
    """The shortest texts that read back as the same numbers, in C order.

    Examples
    --------
    >>> numbers_text(np.array([[0.1, 2], [-0.0, 1e-7]], np.float32))
    ['0.1', '2', '-0.0', '1e-07']
    """
    texts = array.reshape(-1).astype("U").tolist()
    if array.dtype.kind != "f":
        return texts
    return [text[:-2] if text.endswith(".0") and text != "-0.0" else text for text in texts]


def describe(content: Any, kind: str) -> str:
    """What the header inside the content says: the size of an image, the shape of an array.

    Parameters
    ----------
    content : bytes-like
        The content of a record.
    kind : str
        What `kind_of` says about it.

    Returns
    -------
    str
        Width x height, and the number of channels where that is known without decoding; or element
        type and shape; empty for other kinds.

    Raises
    ------
    RecordIOError
        The content is truncated or damaged, as far as that shows without decoding.

    Examples
    --------
    >>> from .npy import encode_npy
    >>> describe(encode_npy(np.zeros((2, 3), "f4")), "npy")
    'float32 (2, 3)'
    """
    if kind == "npy":
        array = decode_npy(content)
        if is_sparse(array):
            return f"sparse {array.dtype['value'].name} ({len(array)},)"
        return f"{array.dtype} {array.shape}"
    if kind not in IMAGE_KINDS:
        return ""
    header = read_image_header(bytes(content))
    if header is not None:
        return f"{header.width} x {header.height} x {header.channels}"
    try:
        with open_image(io.BytesIO(content)) as image:
            return f"{image.width} x {image.height} x {len(image.getbands())}"
    except ImageDecodeError as error:
        raise ImageDecodeError(f"the {kind} image is damaged: {error}") from None


def check_content(content: Any) -> None:
    """See whether content is a whole image or array, as far as that shows without decoding.

    Raises
    ------
    RecordIOError
        It is damaged, truncated, empty, or of no known kind.

    Examples
    --------
    >>> check_content(b"<html>")
    Traceback (most recent call last):
        ...
    recordio.errors.RecordIOError: it is neither an image of a known format nor a .npy array
    """
    kind = kind_of(content)
    if kind == "empty":
        raise RecordIOError("it is empty")
    if kind == "other":
        raise RecordIOError("it is neither an image of a known format nor a .npy array")
    describe(content, kind)
