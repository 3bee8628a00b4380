"""Formats that not every OpenCV reads: a trial shows whether OpenCV or Pillow decodes them."""

from __future__ import annotations

import base64
import functools
import importlib
import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.extras import command
from recordio.formats import by_opencv
from recordio.formats.image_size import check_limits, image_size, open_within_limits
from recordio.formats.table import FORMATS, Format
from recordio.formats.webp import webp

__all__ = ["decode", "describe", "reader_of", "uprights"]

#: Rows of the formats that may need another decoder than OpenCV, by kind.
TRIED = {row.kind: row for row in FORMATS if row.sample}


@functools.cache
def reader_of(kind: str) -> str:
    """Name the decoder of a format here: OpenCV, Pillow, recordio, or nothing if there is none.

    >>> reader_of("webp") in ("OpenCV", "Pillow")
    True
    """
    if by_opencv.available() and (kind not in TRIED or _by_opencv(kind) is not None):
        return "OpenCV"
    if kind in TRIED and TRIED[kind].pixels is not None:
        return "recordio"
    module = TRIED[kind].module if kind in TRIED else "PIL"
    return "Pillow" if importlib.util.find_spec(module) else ""


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
    if not by_opencv.available():
        return None
    pixels: Any = by_opencv.imdecode(base64.b64decode(TRIED[kind].sample), 1)
    return pixels


def describe() -> str:
    """Say which decoder reads these formats, except WebP where libwebp does.

    >>> "AVIF" in describe()
    True
    """
    return ", ".join(
        f"{row.name}: {reader_of(kind) or f'no decoder (pip install {row.install})'}"
        for kind, row in TRIED.items()
        if kind != "webp" or not webp.available()
    )


def decode(
    data: memoryview, row: Format, limits: dict[str, int], upright: bool, *, deep: bool = False
) -> NDArray[Any]:
    """Decode an image that OpenCV does not read here: grey, RGB or RGBA, all that is stored.

    With `deep`, grey may have 16 bits or be floating point.  The error says what to install where
    there is no decoder.
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
    row.check_for_opencv(data)
    with open_within_limits(data, limits, (row.pillow,) if row.pillow else None) as image:
        try:
            shown = ImageOps.exif_transpose(image) if upright else image
            pixels = _pixels(shown, deep)
        except (MemoryError, ImageDecodeError):
            raise
        except Exception as error:  # plugins raise what they like
            raise ImageDecodeError(f"the {row.name} image is damaged ({error})") from error
        if deep and pixels.dtype == np.uint8 and _stored_otherwise(data, row, image):
            raise ImageDecodeError(
                f"Pillow decodes this {row.name} to 8 bits: {command('cv2')}, or ask for uint8"
            )
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _stored_otherwise(data: memoryview, row: Format, image: Any) -> bool:
    """Return True if the samples have more than 8 bits, or a sign."""
    facts, tags = row.facts(data), getattr(image, "tag_v2", {})
    bits = facts[0] if facts is not None else max(tags.get(0x102, (8,)))  # BitsPerSample
    return bits > 8 or 2 in tags.get(0x153, ())  # SampleFormat


def _pixels(image: Any, deep: bool) -> NDArray[Any]:
    """Return grey, RGB or RGBA pixels of an image of any mode."""
    if image.mode.startswith("I;16"):
        values = np.array(image).astype(np.uint16)
        return values if deep else (values >> 8).astype(np.uint8)
    if deep and image.mode in ("I", "F"):
        return np.array(image)
    if image.mode == "F":
        raise ImageDecodeError("the image holds floating point values: ask for float32")
    if image.mode == "I":  # 16 bits of PNG, as an older Pillow reads them
        return (np.clip(np.array(image), 0, 65535) >> 8).astype(np.uint8)
    if image.mode == "CMYK":
        return _of_inks(np.array(image), "adobe" in image.info)
    mode = "RGB" if image.mode not in ("L", "1", "LA") else "L"
    if "A" in image.getbands() or "transparency" in image.info:
        mode = "RGBA"
    return np.array(image.convert(mode))


def _of_inks(inks: NDArray[np.uint8], inverted: bool) -> NDArray[np.uint8]:
    """Return RGB as OpenCV computes it of the four values that are stored."""
    stored = (255 - inks if inverted else inks).astype(np.int32)
    black = stored[:, :, 3:]
    return (black - ((255 - stored[:, :, :3]) * black >> 8)).astype(np.uint8)
