"""Content and labels of a record for people: a short description, numbers as text.

Images are decoded only where nothing else shows whether they are whole, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.containers.labels import raw_values_in
from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats.decode import check_whole
from recordio.formats.image_header import DEFAULT_MAX_PIXELS, read_header
from recordio.formats.table import IMAGE_KINDS, kind_of
from recordio.header import IRHeader

from .npy import decode_npy, is_sparse

#: Kinds of images whose files show without decoding whether all pixels are there; almost always.
SHOWN_WHOLE = ("jpeg", "png", "ppm", "pgm")


def labels_of(header: IRHeader) -> list[float]:
    """Return the labels in a header, one or many."""
    return [header.label] if header.flag == 0 else header.label.tolist()


def number_text(value: float) -> str:
    """Return the shortest text of a 32-bit float that reads back as the same.

    Whole numbers have all of their digits and no dot, as readers refuse those that lose digits.
    """
    if value.is_integer() and str(value) != "-0.0":
        return str(int(np.float32(value)))
    return str(np.float32(value))


def numbers_text(array: np.ndarray) -> list[str]:
    """Return the shortest texts that read back as the same numbers, in C order."""
    texts = array.reshape(-1).astype("U").tolist()
    if array.dtype.kind != "f":
        return texts
    return [text[:-2] if text.endswith(".0") and text != "-0.0" else text for text in texts]


def describe(content: Any, kind: str) -> str:
    """Describe content by the header inside it: the size of an image, the shape of an array.

    An image has width x height, upright, the number of channels where that is known without
    decoding, and the bits of a value if they are not 8; an array has element type and shape; other
    kinds have an empty text.  Damage is an error if it shows without decoding.
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
    if kind in SHOWN_WHOLE:
        _check_whole(content)
    width, height = header.size
    channels = "" if header.channels is None else f" x {header.channels}"
    bits = "" if header.bits in (8, None) else f", {header.bits} bits"
    return f"{width} x {height}{channels}{bits.replace(' 1 bits', ' 1 bit')}"


def check_content(content: Any, sides: Sequence[int] = ()) -> None:
    """Refuse content that is no whole image or array; `sides` are those of `raw_values_in`."""
    kind = kind_of(content)
    if kind == "empty":
        raise RecordIOError("it is empty")
    if kind == "other":
        raise RecordIOError(
            "it is neither an image of a known format nor a .npy array"
            + raw_values_in(content, sides)
        )
    describe(content, kind)
    if kind in IMAGE_KINDS and kind not in SHOWN_WHOLE:
        _check_whole(content)


def _check_whole(content: Any) -> None:
    """Refuse an image of which not all pixels are there."""
    try:
        check_whole(content)
    except ImageDecodeError:
        width, height = read_header(content).size
        if width * height <= DEFAULT_MAX_PIXELS:
            raise
        raise ImageDecodeError(
            f"only decoding shows whether it is whole, and {width} x {height} pixels are more than "
            f"the limit of {DEFAULT_MAX_PIXELS}; --check none stores it all the same"
        ) from None
