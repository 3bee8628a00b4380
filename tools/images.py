"""Images to bytes and back, losslessly and with a typed error; and checks for damage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats import by_opencv
from recordio.formats.decode import UNCHANGED, check_whole, decode_as_opencv, decode_image
from recordio.formats.encode import encode_as_opencv
from recordio.formats.general import turned
from recordio.formats.image_header import (
    ANY_SIZE,
    DEFAULT_MAX_PIXELS,
    check_limits,
    read_header,
)
from recordio.formats.jpeg import jpeg
from recordio.formats.table import format_of
from recordio.formats.transcode.transcode import read_all_codes

#: Fast to write; levels above gain little on photographs and cost several times as much.
PNG_LEVEL = 3
JPEG_QUALITY = 95


def encode_image(image: np.ndarray, suffix: str) -> bytes:
    """Encode a grey, BGR or BGRA image of uint8, or uint16 for PNG; `suffix` names the format."""
    try:
        return encode_as_opencv(image, suffix, JPEG_QUALITY if suffix == ".jpg" else PNG_LEVEL)
    except by_opencv.errors() as error:
        raise RecordIOError(
            f"an image of shape {image.shape} and {image.dtype} is no {suffix}: {error}"
        ) from None


def decode_upright(content: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> np.ndarray:
    """Decode an image to the values and channels that are stored (BGR, BGRA or grey), upright."""
    pixels = decode_as_opencv(content, UNCHANGED, {"max_pixels": max_pixels}, "--max-pixels")
    if format_of(content).is_always_turned:
        return pixels
    return np.ascontiguousarray(turned(pixels, read_header(content).orientation))


def decode_content(
    content: Any, *, max_pixels: int = DEFAULT_MAX_PIXELS, **location: Any
) -> np.ndarray:
    """Decode the image of a record with `decode_upright`.

    Images of more than `max_pixels` are refused before anything is decoded.  Errors name the
    `location`.
    """
    if not len(content):
        raise ImageDecodeError("it is no image that can be decoded: it is empty", **location)
    try:
        return decode_upright(content, max_pixels)
    except ImageDecodeError as error:
        raise ImageDecodeError(error.reason, **location) from None


def warnings_are_noticed() -> bool:
    """Return True if `check_jpeg` can work: `iterators` was built with libjpeg-turbo."""
    return jpeg.available()


def check_jpeg(content: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> bool:
    """Read all coefficients of a JPEG image, and refuse it if libjpeg warns of damage.

    A decoder goes on where the entropy-coded data is damaged: the pixels from there on are grey or
    colourful noise, and warnings are the only sign.  The most common one, of bytes that are left
    over after the last pixel, comes only to those who read the file to its end, as this does.
    Warnings about what changes no pixel do not count, such as those of a JFIF version.

    It returns False for an image that was not examined: one that is no JPEG image, or is of a rare
    kind, coded arithmetically or with 12 bits; and all if libjpeg-turbo was not found when
    `iterators` was built.
    """
    if bytes(content[:3]) != b"\xff\xd8\xff" or not jpeg.available():
        return False
    check_limits(content, {"max_pixels": max_pixels}, "--max-pixels")
    try:
        return read_all_codes(content, max_pixels=ANY_SIZE)
    except ImageDecodeError as error:
        raise ImageDecodeError(f"{error.reason}; pack it again from its source") from None


def check_stored(content: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> None:
    """Refuse an image that lacks pixels; it is decoded if nothing else shows that."""
    try:
        check_whole(content, max_pixels)
    except ImageDecodeError:
        check_limits(content, {"max_pixels": max_pixels}, "--max-pixels")  # names the option
        raise


def check_decodes(content: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> None:
    """Decode an image of any format, and refuse every kind of damage."""
    check_limits(content, {"max_pixels": max_pixels}, "--max-pixels")
    check_jpeg(content, max_pixels)
    if read_header(content).numbers != "u":
        decode_upright(content, ANY_SIZE)  # such as depths of floating point
        return
    check_whole(content, ANY_SIZE)  # knows the checksums of PNG
    decode_image(content, max_pixels=ANY_SIZE)


def swap_red_and_blue(image: np.ndarray) -> np.ndarray:
    """Turn RGB into BGR, RGBA into BGRA, and back; images without colour stay as they are."""
    if image.ndim == 2:
        return image
    return image[..., [2, 1, 0, *range(3, image.shape[2])]]


@contextlib.contextmanager
def one_opencv_thread() -> Iterator[None]:
    """Keep OpenCV from starting threads of its own: ours already use every core."""
    if not by_opencv.available():
        yield
        return
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
