"""Images to bytes and back, losslessly and with a typed error; OpenCV does the work."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from iterators.images.codecs import general
from iterators.images.codecs.jpeg import jpeg
from iterators.images.codecs.transcode.transcode import coefficients
from recordio.errors import ImageDecodeError, RecordIOError
from recordio.image_size import (
    DEFAULT_MAX_PIXELS,
    check_for_opencv,
    check_limits,
    image_size,
    open_image,
)

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

#: How `coefficients` calls an image at the first warning of libjpeg.
DAMAGE = ("damaged", "truncated")


def encode_image(image: np.ndarray, suffix: str) -> bytes:
    """Encode an image.

    Parameters
    ----------
    image : numpy.ndarray, shape (height, width) or (height, width, 3 or 4)
        Grey, BGR or BGRA; uint8, or uint16 for PNG.
    suffix : ``".png"`` or ``".jpg"``
        The format.

    Returns
    -------
    bytes

    Raises
    ------
    RecordIOError
        OpenCV cannot encode it.

    Examples
    --------
    >>> encode_image(np.zeros((2, 2), np.uint8), ".png")[1:4]
    b'PNG'
    """
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
    """The option of commands that decode."""
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
    """Decode an image.

    Parameters
    ----------
    content : bytes-like
        The encoded image.
    mode : int
        OpenCV's: what becomes of colours and orientation.
    max_pixels : int
        Images with more are refused before anything is decoded.
    **place
        For errors: ``path=``, ``record=`` ...

    Returns
    -------
    numpy.ndarray
        Shape (height, width) or (height, width, channels), in OpenCV's order (BGR).

    Raises
    ------
    ImageDecodeError
        It is no image, a damaged one, or too large.

    Examples
    --------
    >>> import cv2
    >>> decode_image(encode_image(np.eye(2, dtype=np.uint8), ".png"), cv2.IMREAD_UNCHANGED)
    array([[1, 0],
           [0, 1]], dtype=uint8)
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
    """Whether `check_jpeg` can do its work: `iterators` was built with libjpeg-turbo."""
    return jpeg.available()


def check_jpeg(content: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> bool:
    """Read all coefficients of a JPEG image, and refuse it at the first warning of libjpeg.

    A decoder goes on where the entropy-coded data is damaged: the pixels from there on are grey or
    colourful noise, and warnings are the only sign.  The most common one, of bytes that are left
    over after the last pixel, comes only to those who read the file to its end, as this does.

    Parameters
    ----------
    content : bytes-like
        The encoded image.
    max_pixels : int
        Images with more are refused before anything is read.

    Returns
    -------
    bool
        False if it was not examined: it is no JPEG image, or one of a rare kind, coded
        arithmetically or with 12 bits; or libjpeg-turbo was not found when `iterators` was built.

    Raises
    ------
    ImageDecodeError
        It is damaged, truncated or too large.

    Examples
    --------
    >>> check_jpeg(encode_image(np.eye(2, dtype=np.uint8), ".png"))
    False
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
    """Decode an image of any format as the iterators do, and refuse every kind of damage.

    Parameters
    ----------
    content : bytes-like
        The encoded image.
    max_pixels : int
        Images with more are refused before anything is decoded.

    Raises
    ------
    ImageDecodeError
        It is damaged, truncated or too large, or no image.
    """
    read_image_header(bytes(content))  # knows the checksums of PNG, and truncation
    check_jpeg(content, max_pixels)
    check_limits(content, image_size(content), {"max_pixels": max_pixels}, "--max-pixels")
    general.decode(content, max_pixels=ANY_SIZE)


def decode_gif(content: Any, mode: int) -> np.ndarray | None:
    """The first frame of a GIF file by Pillow: OpenCV before 4.11 knows no GIF.

    Parameters
    ----------
    content : bytes-like
        The file.
    mode : int
        OpenCV's: 1 colour, 0 grey, -1 as stored.

    Returns
    -------
    numpy.ndarray or None
        As `cv2.imdecode` gives it; None if it is damaged.
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
    """RGB to BGR, RGBA to BGRA, and back; images without colour stay as they are.

    Examples
    --------
    >>> swap_red_and_blue(np.array([[[1, 2, 3, 4]]], np.uint8))
    array([[[3, 2, 1, 4]]], dtype=uint8)
    """
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
