"""Content and labels of a record for people: a short description, numbers as text.

No pixel is decoded here, and nothing is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats.image_header import read_header
from recordio.formats.table import IMAGE_KINDS, kind_of
from recordio.header import IRHeader
from recordio.lists import EXACT_IN_FLOAT32

from .npy import decode_npy, is_sparse

__all__ = [
    "check_content",
    "describe",
    "labels_of",
    "number_text",
    "numbers_text",
]


def labels_of(header: IRHeader) -> list[float]:
    """Return the labels in a header, one or many."""
    return [header.label] if header.flag == 0 else header.label.tolist()


def number_text(value: float) -> str:
    """Return the shortest text of a 32-bit float that reads back as the same.

    Whole numbers have no dot.
    """
    if value.is_integer() and abs(value) <= EXACT_IN_FLOAT32 and str(value) != "-0.0":
        return str(int(value))
    return str(np.float32(value))


def numbers_text(array: np.ndarray) -> list[str]:
    """Return the shortest texts that read back as the same numbers, in C order."""
    texts = array.reshape(-1).astype("U").tolist()
    if array.dtype.kind != "f":
        return texts
    return [text[:-2] if text.endswith(".0") and text != "-0.0" else text for text in texts]


def describe(content: Any, kind: str) -> str:
    """Describe content by the header inside it: the size of an image, the shape of an array.

    An image has width x height, and the number of channels where that is known without decoding; an
    array has element type and shape; other kinds have an empty text.
    """
    if kind == "npy":
        array = decode_npy(content)
        if is_sparse(array):
            return f"sparse {array.dtype['value'].name} ({len(array)},)"
        return f"{array.dtype} {array.shape}"
    if kind not in IMAGE_KINDS:
        return ""
    try:
        header = read_header(content)
    except ImageDecodeError as error:
        raise ImageDecodeError(f"the {kind} image is damaged: {error}") from None
    channels = "" if header.channels is None else f" x {header.channels}"
    bits = f", {header.bits} bits" if header.bits not in (8, None) else ""
    return f"{header.width} x {header.height}{channels}{bits}"


def check_content(content: Any) -> None:
    """Refuse content that is no whole image or array, as far as that shows without decoding."""
    kind = kind_of(content)
    if kind == "empty":
        raise RecordIOError("it is empty")
    if kind == "other":
        raise RecordIOError("it is neither an image of a known format nor a .npy array")
    describe(content, kind)
