"""All use of OpenCV for images: the calls that decode what Pillow cannot, and that encode."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from recordio.errors import ImageDecodeError
from recordio.formats.table import FORMATS

#: OpenCV's mode for an image as it is stored.
UNCHANGED = -1

_QUALITIES = {suffix: row.quality for row in FORMATS for suffix in row.suffixes if row.quality}


@functools.cache
def available() -> bool:
    """Return True if OpenCV is installed: everything works without it, some of it slower."""
    try:
        return importlib.util.find_spec("cv2") is not None
    except ModuleNotFoundError:  # of a finder that refuses it
        return False


def version() -> str:
    """Return the version of OpenCV, or none."""
    if not available():
        return "none"
    import cv2

    return str(cv2.__version__)


def errors() -> tuple[type[Exception], ...]:
    """Return what OpenCV raises where it is, and what stands in for it."""
    if not available():
        return (ValueError,)
    import cv2

    return (cv2.error, ValueError)


def imdecode(data: Any, mode: int) -> Any:
    """Decode an image whose cost was looked at; None if OpenCV can make nothing of it."""
    import cv2

    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), mode)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError(error.err) from None
        raise ImageDecodeError(f"OpenCV cannot decode the image ({error.err})") from error


def encode(pixels: np.ndarray, suffix: str, quality: int | None = None) -> bytes:
    """Encode grey, BGR or BGRA pixels as the format of a suffix.

    A quality outside its range is clamped; formats without one in the table are written with
    OpenCV's defaults.  Errors are OpenCV's, or a ValueError.
    """
    import cv2

    parameters = []
    if quality is not None and (named := _QUALITIES.get(suffix.lower())):
        parameters = [getattr(cv2, named[0]), min(max(quality, 0), named[1])]
    encoded, content = cv2.imencode(suffix, np.ascontiguousarray(pixels), parameters)
    if not encoded:
        raise ValueError(f"OpenCV could not encode an image of shape {pixels.shape} as {suffix}")
    return content.tobytes()
