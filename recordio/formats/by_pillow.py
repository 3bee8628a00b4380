"""Formats that not every OpenCV reads: their decoder here is found by trying, Pillow if it can."""

from __future__ import annotations

import base64
import functools
import importlib
import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.formats.by_opencv import imdecode
from recordio.formats.image_size import check_limits, image_size, open_within_limits
from recordio.formats.table import FORMATS, Format

__all__ = ["decode", "describe", "reader_of", "uprights"]

#: Rows of the formats that may need another decoder than OpenCV, by kind.
TRIED = {row.kind: row for row in FORMATS if row.sample}


@functools.cache
def reader_of(kind: str) -> str:
    """Name the decoder of a format here: OpenCV, Pillow, recordio, or nothing if there is none.

    >>> reader_of("webp") in ("OpenCV", "Pillow")
    True
    """
    if kind not in TRIED or _by_opencv(kind) is not None:
        return "OpenCV"
    if TRIED[kind].pixels is not None:
        return "recordio"
    return "Pillow" if importlib.util.find_spec(TRIED[kind].module) else ""


def uprights(kind: str) -> bool:
    """Return True if images are turned as their orientation says, by whoever reads them here.

    >>> uprights("jxl")
    True
    """
    return kind not in TRIED or reader_of(kind) != "OpenCV" or _opencv_uprights(kind)


@functools.cache
def _opencv_uprights(kind: str) -> bool:
    pixels = _by_opencv(kind)
    return pixels is not None and pixels.shape[0] > pixels.shape[1]


def _by_opencv(kind: str) -> NDArray[np.uint8] | None:
    """Decode the sample of a format by OpenCV; None if it is not there, or cannot read it."""
    try:  # free-threaded interpreters have no OpenCV yet
        import cv2
    except ModuleNotFoundError:
        return None
    pixels: Any = imdecode(base64.b64decode(TRIED[kind].sample), cv2.IMREAD_COLOR)
    return pixels


def describe() -> str:
    """Say who reads what.

    >>> "WebP" in describe()
    True
    """
    return ", ".join(
        f"{row.name}: {reader_of(kind) or f'nobody (pip install {row.install})'}"
        for kind, row in TRIED.items()
    )


def decode(
    data: memoryview, row: Format, limits: dict[str, int], upright: bool
) -> NDArray[np.uint8]:
    """Decode an image that OpenCV does not read here: grey, RGB or RGBA, all that is stored.

    The error says what to install where there is no decoder.
    """
    reader = reader_of(row.kind)
    if not reader:
        raise ImageDecodeError(
            f"a {row.name} image, which neither OpenCV nor Pillow can decode here: "
            f"pip install {row.install}, or store another format"
        )
    if row.pixels is not None and reader != "Pillow":
        check_limits(data, image_size(data), limits)
        return row.pixels(data)
    importlib.import_module(row.module)  # a plugin makes itself known to Pillow
    from PIL import ImageOps

    check_limits(data, image_size(data), limits)
    with open_within_limits(data, limits, (row.pillow,)) as image:
        mode = "RGB" if image.mode != "L" else "L"
        if "A" in image.getbands() or "transparency" in image.info:
            mode = "RGBA"
        try:
            shown = ImageOps.exif_transpose(image) if upright else image
            pixels = np.array(shown.convert(mode))
        except MemoryError:
            raise
        except Exception as error:  # plugins raise what they like
            raise ImageDecodeError(f"the {row.name} image is damaged ({error})") from error
    return pixels[:, :, None] if pixels.ndim == 2 else pixels
