"""The decoder of images without a row source: whole, by Pillow, or OpenCV where Pillow fails.

Every image is decoded as it is stored, by the first in the row of its format that reads it: our own
reader of its values, Pillow, and OpenCV for what Pillow cannot read; so the pixels do not depend on
what else is installed.  Then they are turned as the header says.  `decode` has the functions for
users.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.extras import command
from recordio.formats import by_opencv
from recordio.formats.image_header import (
    ImageHeader,
    check_limits,
    complete_limits,
    open_with_plugin,
    read_header,
)
from recordio.formats.jpeg import MISSING, jpeg
from recordio.formats.table import FORMATS, Format, format_of
from recordio.formats.webp import webp

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package

#: Formats whose images Pillow completes.
_END_EARLY = ("jpeg", "png")
_PHOTOMETRIC, _COLOUR_MAP = 262, 320
#: The orientation that undoes one.
_BACK = (1, 1, 2, 3, 4, 5, 8, 7, 6)


def decode_other(
    data: Buffer,
    channels: int = 3,
    *,
    deep: bool = False,
    upright: bool = True,
    ends_early: bool = False,
    **limits: int | None,
) -> NDArray[Any]:
    """Decode an image, upright, to 8 bits per channel or, if `deep`, to the values that are stored.

    Three channels are RGB, one is grey, both converted from whatever is stored and turned as the
    orientation says.  Four are RGBA: the image must have them, and is taken as stored.  None (0)
    are those that are stored: grey, RGB or RGBA.  Of several frames the first counts.  Without
    `upright` an orientation in EXIF data is ignored.  One that `ends_early` is left to Pillow.

    Eight bits are the upper ones of more; `deep` gives uint8, uint16 or whatever else is stored,
    such as the numbers with a sign or floating point of a TIFF: nothing is scaled and no bit is
    lost.  The limits are those of `complete_limits`.
    """
    view = memoryview(data).cast("B")
    all_limits = complete_limits(limits)
    row = format_of(view)
    header = read_header(view)
    check_limits(view, all_limits, size=header.size)
    if channels == 4 and header.channels in (1, 3):
        raise _lacks_channels(header.channels)
    pixels = None
    if not ends_early:
        pixels = row.values(view, channels, max_pixels=all_limits["max_pixels"])
    if pixels is None:
        pixels = _by_libraries(view, row, header, channels, deep)
    if pixels.shape[:2] != (header.height, header.width):
        raise ImageDecodeError(
            f"the header of the {row.name} image says {header.width} x {header.height} pixels, and "
            f"its decoder gives {pixels.shape[1]} x {pixels.shape[0]}: it is damaged"
        )
    if not deep:
        pixels = _upper_bits(pixels, header)
    if (upright and channels != 4) or row.is_always_turned:
        pixels = turned(pixels, header.orientation)
    return np.ascontiguousarray(_with_channels(pixels, channels, row))


def wishes(background: tuple[int, int, int] | None, strict: bool) -> dict[str, Any]:
    """Return what `decode_special` is wanted for, as its keywords; empty if for nothing.

    Images that end early are wanted by a script that told Pillow so, if they need not be sound.
    """
    keywords: dict[str, Any] = {} if background is None else {"background": background}
    if strict and not jpeg.available():
        keywords["sound"] = True
    pillow = sys.modules.get("PIL.ImageFile")
    if not strict and getattr(pillow, "LOAD_TRUNCATED_IMAGES", False):
        keywords["truncated"] = True
    return keywords


def decode_special(
    data: Buffer,
    channels: int,
    *,
    background: tuple[int, int, int] | None = None,
    truncated: bool = False,
    sound: bool = False,
    upright: bool = True,
    **limits: int | None,
) -> NDArray[Any] | None:
    """Decode an image as `decode_other` does, if there is a reason; None for all other images.

    The reasons are transparency, which shows the colour of the `background`, and a JPEG or PNG
    image that ends early, if those are `truncated` as Pillow does it.  A JPEG image that must be
    `sound` is refused, as Pillow does not tell of damage.
    """
    view = memoryview(data).cast("B")
    row = format_of(view)
    if sound and row.kind == "jpeg":
        raise ImageDecodeError(
            "strict=True refuses JPEG images whose data is damaged, and Pillow, which decodes them "
            f"here, does not tell; {MISSING}"
        )
    ends_early = truncated and row.kind in _END_EARLY and not row.is_whole(view)
    if background is None:
        over = False
    else:  # codecs give rows without alpha; the header says whether there is some
        over = row.kind != "jpeg" and (row.rows is None or read_header(view).channels in (2, 4))
    if not over and not ends_early:
        return None
    pixels = decode_other(
        view,
        0 if over else channels,
        deep=False,
        upright=upright,
        ends_early=ends_early,
        **limits,
    )
    if over and pixels.shape[2] == 4:
        colours, alpha = pixels[:, :, :3].astype(np.uint32), pixels[:, :, 3:]
        total = colours * alpha + np.array(background, np.uint32) * (255 - alpha) + 128
        pixels = (total + (total >> 8) >> 8).astype(np.uint8)  # the quotient by 255, rounded
    return np.ascontiguousarray(_with_channels(pixels, channels, row))


def turned(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Turn rows of pixels upright that are stored with an EXIF orientation; a view of them.

    >>> turned(np.array([[1, 2, 3]]), 6).tolist()
    [[1], [2], [3]]
    """
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels


def as_type(pixels: NDArray[Any], dtype: np.dtype) -> NDArray[Any]:
    """Return stored values in another type, which must hold each of them.

    >>> as_type(np.array([70000]), np.dtype("uint16"))
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the image holds int64 values that uint16 cannot; ask for ...
    """
    if pixels.dtype == dtype:
        return pixels
    with np.errstate(invalid="ignore"):
        values = pixels.astype(dtype)
    if not np.array_equal(values, pixels, equal_nan=pixels.dtype.kind == "f"):
        remedy = "; ask for float32" if dtype == np.uint16 else ""
        raise ImageDecodeError(f"the image holds {pixels.dtype} values that {dtype} cannot{remedy}")
    return values


def describe() -> str:
    """Say which decoder decodes what.

    >>> "Pillow" in describe()
    True
    """
    decoders, missing = ["our own (region) for PNG"], []
    if jpeg.available():
        entropy = jpeg.entropy_decoder()
        own = f"{jpeg.library()} (region and scale, entropy decoder: {entropy}) for JPEG"
        decoders.insert(0, own)
    else:
        missing.append("for faster JPEG those of libjpeg-turbo (apt install libjpeg62-turbo-dev)")
    if webp.available():
        decoders.append(f"{webp.library()} (region) for WebP")
    else:
        missing.append("for faster WebP those of libwebp (apt install libwebp-dev)")
    decoders.append("Pillow for everything else")
    only = ", ".join(f"{row.name} ({row.opencv})" for row in FORMATS if row.opencv)
    if by_opencv.available():
        decoders.append(f"OpenCV {by_opencv.version()} for what Pillow cannot read: {only}")
    else:
        decoders.append(f"no OpenCV ({command('cv2')}) for what Pillow cannot read: {only}")
    for row in FORMATS:
        if row.install != "pillow" and not _has_plugin(row):
            decoders.append(f"nothing for {row.name} (pip install {row.install})")
    text = ", ".join(decoders)
    if missing:
        text += f"; install a wheel, or headers and build again: {', '.join(missing)}"
    return text


def _has_plugin(row: Format) -> bool:
    """Return True if the Pillow that is installed has a decoder for a format."""
    try:
        __import__(row.module)
    except ImportError:
        return False
    return True


def _by_libraries(
    view: memoryview, row: Format, header: ImageHeader, channels: int, deep: bool
) -> NDArray[Any]:
    """Decode by the first library that reads the image; the error has the reasons of all."""
    reasons = []
    if row.pillow or not row.opencv:
        try:
            return _by_pillow(view, row, header, channels, deep)
        except ImageDecodeError as error:
            reasons.append(f"Pillow: {error.reason}")
    if row.opencv and by_opencv.available():
        try:
            return _by_opencv(view, header)
        except ImageDecodeError as error:
            reasons.append(f"OpenCV: {error.reason}")
    elif row.opencv:
        reasons.append(f"OpenCV, which reads {row.opencv} of it, is missing: {command('cv2')}")
    described = row.describe(view)
    raise ImageDecodeError(
        f"the {row.name} image{f' ({described})' if described else ''} cannot be decoded: it is "
        f"damaged, truncated or of a kind that is not supported. {'; '.join(reasons)}"
    )


def _by_pillow(
    view: memoryview, row: Format, header: ImageHeader, channels: int, deep: bool
) -> NDArray[Any]:
    """Decode by Pillow to the pixels that are stored; grey ones of JPEG are the stored luma."""
    try:
        with open_with_plugin(view, row) as image:
            if channels == 1 and row.kind == "jpeg":
                image.draft("L", image.size)
            turns = row.pillow_turns(image, header)
            pixels = _pixels_of_pillow(image, row, header)
    except ModuleNotFoundError:
        raise ImageDecodeError(
            f"it has no decoder for {row.name}: pip install {row.install}, or store another format"
        ) from None
    except (MemoryError, ImageDecodeError):
        raise
    except Exception as error:  # plugins raise what they like
        raise ImageDecodeError(str(error) or type(error).__name__) from error
    if deep and (header.bits or 8) > 8 * pixels.dtype.itemsize:
        raise ImageDecodeError(
            f"it gives {8 * pixels.dtype.itemsize} of {header.bits} bits, which dtype='uint8' takes"
        )
    pixels = turned(pixels, _BACK[turns])
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _pixels_of_pillow(image: Any, row: Format, header: ImageHeader) -> NDArray[Any]:
    """Return grey, RGB or RGBA pixels of an image of any mode, with all bits that Pillow has."""
    tags = getattr(image, "tag_v2", {})
    bits = header.bits or 16
    if image.mode.startswith("I;16"):
        values = np.asarray(image).astype(np.uint16)
        if row.kind == "jpeg2000":
            values >>= 16 - bits  # Pillow stretches them
        return (1 << bits) - 1 - values if tags.get(_PHOTOMETRIC) == 0 else values
    if image.mode == "I":
        values = np.array(image)
        if header.numbers != "u":
            return values
        return values.astype(np.uint16) if bits <= 16 else values.view(np.uint32)
    if image.mode == "F":
        return np.array(image)
    colours = np.array(tags.get(_COLOUR_MAP, ()))
    if image.mode == "P" and len(colours) and colours.max() < 256:  # older writers stored 8 bits
        return colours.reshape(3, -1).T.astype(np.uint8)[np.asarray(image)]
    mode = "RGB" if image.mode not in ("L", "1", "LA") else "L"
    if "A" in image.getbands() or "transparency" in image.info:
        mode = "RGBA"
    pixels = np.array(image.convert(mode))
    return pixels.view(np.int8) if header.numbers == "i" and header.bits == 8 else pixels


def _by_opencv(view: memoryview, header: ImageHeader) -> NDArray[Any]:
    """Decode by OpenCV what Pillow cannot: grey, RGB or RGBA pixels with all bits."""
    pixels = by_opencv.imdecode(view, by_opencv.UNCHANGED)
    if pixels is None:
        raise ImageDecodeError("it reads no image")
    bits = header.bits or 16
    if pixels.dtype == np.uint16 and 8 < bits < 16:
        pixels = pixels >> 16 - bits  # OpenCV stretches them
    if pixels.ndim == 2:
        return pixels[:, :, None]
    return pixels[..., [2, 1, 0, 3][: pixels.shape[2]]]


def _upper_bits(pixels: NDArray[Any], header: ImageHeader) -> NDArray[np.uint8]:
    """Return the upper 8 of the stored bits."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind != "u":
        name = "floating point" if pixels.dtype.kind == "f" else "signed"
        raise ImageDecodeError(
            f"the image holds {name} values ({pixels.dtype}), which 8 bits cannot: ask for "
            "dtype='float32'"
        )
    bits = header.bits or 8 * pixels.dtype.itemsize
    return (pixels >> bits - 8).astype(np.uint8)


def _with_channels(pixels: NDArray[Any], channels: int, row: Format) -> NDArray[Any]:
    """Return grey, RGB or RGBA pixels with other channels."""
    count = pixels.shape[2]
    if channels in (count, 0):
        return pixels
    if channels == 4:
        raise _lacks_channels(count)
    if count == 1:
        return np.repeat(pixels, 3, 2)
    return pixels[:, :, :3] if channels == 3 else grey_of(pixels, row.grey)


def _lacks_channels(count: int) -> ImageDecodeError:
    return ImageDecodeError(f"the image has {count} channels, not the 4 that were asked for")


def grey_of(colours: NDArray[Any], weights: tuple[int, int, int]) -> NDArray[Any]:
    """Return grey pixels of RGB ones, (height, width, 1)."""
    total = sum(weights)
    if colours.dtype.kind == "f":
        grey: NDArray[Any] = colours[:, :, :3] @ (np.array(weights) / total)
    else:
        grey = (colours[:, :, :3].astype(np.int64) @ np.array(weights) + total // 2) // total
    return grey.astype(colours.dtype)[:, :, None]
