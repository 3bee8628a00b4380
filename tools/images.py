"""Images to bytes and back, losslessly and with a typed error; OpenCV does the work."""

from __future__ import annotations

import argparse
from typing import Any

import cv2
import numpy as np

from iterators.images.codecs.jpeg import jpeg
from recordio.errors import ImageDecodeError, RecordIOError
from recordio.image_size import DEFAULT_MAX_PIXELS, check_pixels, image_size

from .image_header import ANY_SIZE

__all__ = ["add_pixel_limit", "decode_image", "encode_image", "swap_red_and_blue"]

#: Fast to write; levels above gain little on photographs and cost several times as much.
PNG_LEVEL = 3
JPEG_QUALITY = 95


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
    >>> decode_image(encode_image(np.eye(2, dtype=np.uint8), ".png"), cv2.IMREAD_UNCHANGED)
    array([[1, 0],
           [0, 1]], dtype=uint8)
    """
    image = None
    if len(content):
        try:
            check_pixels(image_size(content), max_pixels, "--max-pixels")
            jpeg.check_limits(content, max_pixels=ANY_SIZE)
            image = cv2.imdecode(np.frombuffer(content, np.uint8), mode)
        except ImageDecodeError as error:
            raise ImageDecodeError(error.reason, **place) from None
        except cv2.error as error:
            raise ImageDecodeError(f"the image cannot be decoded: {error.err}", **place) from None
    if image is None:
        raise ImageDecodeError("it is no image that can be decoded", **place)
    return image


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
