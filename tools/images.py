"""Images to bytes and back, losslessly and with a typed error; OpenCV does the work."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats import general
from recordio.formats.image_size import (
    DEFAULT_MAX_PIXELS,
    check_for_opencv,
    check_limits,
    image_size,
    open_image,
)
from recordio.formats.jpeg import jpeg
from recordio.formats.transcode.transcode import coefficients

from .image_header import ANY_SIZE, read_image_header

__all__ = [
    "add_pixel_limit",
    "check_decodes",
    "check_jpeg",
    "decode_gif",
    "decode_image",
    "encode_image",
    "one_opencv_thread",
    "swap_red_and_blue",
    "warnings_are_noticed",
]

#: Fast to write; levels above gain little on photographs and cost several times as much.
PNG_LEVEL = 3
JPEG_QUALITY = 95

#: Results of `coefficients` for an image at the first warning of libjpeg.
DAMAGE = ("damaged", "truncated")


def encode_image(image: np.ndarray, suffix: str) -> bytes:
    """Encode a grey, BGR or BGRA image of uint8, or uint16 for PNG; `suffix` names the format."""
    import cv2

    parameters = [cv2.IMWRITE_PNG_COMPRESSION, PNG_LEVEL]
    if suffix == ".jpg":
        parameters = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    try:
        encoded, content = cv2.imencode(suffix, np.ascontiguousarray(image), parameters)
    except cv2.error as error:
        encoded, reason = False, f": {error.err}"
    else:
        reason = ""
    if not encoded:
        raise RecordIOError(
            f"an image of shape {image.shape} and {image.dtype} is no {suffix}{reason}"
        )
    return content.tobytes()


def add_pixel_limit(parser: argparse._ActionsContainer) -> None:
    """Add the option of commands that decode."""
    parser.add_argument(
        "--max-pixels",
        type=int,
        default=DEFAULT_MAX_PIXELS,
        metavar="N",
        help="do not decode images with more pixels (default: 2**26)",
    )


def decode_image(
    content: Any, mode: int, *, max_pixels: int = DEFAULT_MAX_PIXELS, **place: Any
) -> np.ndarray:
    """Decode an image; `mode` is that of OpenCV, and so is the order of channels (BGR).

    Images of more than `max_pixels` are refused before anything is decoded.  `place` is for errors.
    """
    import cv2

    image = None
    if len(content):
        try:
            check_for_opencv(content, {"max_pixels": max_pixels}, "--max-pixels")
            image = cv2.imdecode(np.frombuffer(content, np.uint8), mode)
        except ImageDecodeError as error:
            raise ImageDecodeError(error.reason, **place) from None
        except cv2.error as error:
            raise ImageDecodeError(f"the image cannot be decoded: {error.err}", **place) from None
    if image is None:
        raise ImageDecodeError("it is no image that can be decoded", **place)
    return image


def warnings_are_noticed() -> bool:
    """Return True if `check_jpeg` can work: `iterators` was built with libjpeg-turbo."""
    return jpeg.available()


def check_jpeg(content: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> bool:
    """Read all coefficients of a JPEG image, and refuse it at the first warning of libjpeg.

    A decoder goes on where the entropy-coded data is damaged: the pixels from there on are grey or
    colourful noise, and warnings are the only sign.  The most common one, of bytes that are left
    over after the last pixel, comes only to those who read the file to its end, as this does.

    It returns False for an image that was not examined: one that is no JPEG image, or is of a rare
    kind, coded arithmetically or with 12 bits; and all if libjpeg-turbo was not found when
    `iterators` was built.
    """
    if bytes(content[:3]) != b"\xff\xd8\xff" or not jpeg.available():
        return False
    check_limits(content, image_size(content), {"max_pixels": max_pixels}, "--max-pixels")
    try:
        coefficients(content, max_pixels=ANY_SIZE)
    except ImageDecodeError as error:
        if error.reason not in DAMAGE:
            return False
        raise ImageDecodeError(
            f"the JPEG image is {error.reason}: a decoder warns of it and makes up the rest; pack "
            "it again from its source"
        ) from None
    return True


def check_decodes(content: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> None:
    """Decode an image of any format as the iterators do, and refuse every kind of damage."""
    read_image_header(bytes(content))  # knows the checksums of PNG, and truncation
    check_jpeg(content, max_pixels)
    check_limits(content, image_size(content), {"max_pixels": max_pixels}, "--max-pixels")
    general.decode(content, max_pixels=ANY_SIZE)


def decode_gif(content: Any, mode: int) -> np.ndarray | None:
    """Decode the first frame of a GIF file by Pillow: OpenCV before 4.11 knows no GIF.

    `mode` is that of OpenCV: 1 colour, 0 grey, -1 as stored.  A damaged file gives None.
    """
    import cv2

    try:
        with open_image(io.BytesIO(content), ("GIF",)) as image:
            with_alpha = mode == cv2.IMREAD_UNCHANGED and "transparency" in image.info
            pixels = np.asarray(image.convert("RGBA" if with_alpha else "RGB"))
    except (ImageDecodeError, OSError, SyntaxError, ValueError, EOFError):
        return None
    pixels = swap_red_and_blue(pixels)
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY) if mode == cv2.IMREAD_GRAYSCALE else pixels


def swap_red_and_blue(image: np.ndarray) -> np.ndarray:
    """Turn RGB into BGR, RGBA into BGRA, and back; images without colour stay as they are."""
    if image.ndim == 2:
        return image
    return image[..., [2, 1, 0, *range(3, image.shape[2])]]


@contextlib.contextmanager
def one_opencv_thread() -> Iterator[None]:
    """Keep OpenCV from starting threads of its own: ours already use every core."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
