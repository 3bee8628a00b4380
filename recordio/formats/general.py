"""The decoder of images without a row source: whole images, by OpenCV or Pillow.

It looks at the limits before anything is decoded.  `decode` has the functions for users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.extras import command
from recordio.formats import by_opencv, by_pillow
from recordio.formats.image_size import check_for_opencv, complete_limits, image_size, is_turned
from recordio.formats.jpeg import jpeg
from recordio.formats.png import png
from recordio.formats.table import Format, row_of
from recordio.formats.webp import webp

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package

__all__ = ["decode_other", "describe", "is_foreign", "upright_size"]


def decode_other(
    data: Buffer,
    channels: int = 3,
    *,
    deep: bool = False,
    upright: bool = True,
    **limits: int | None,
) -> NDArray[np.uint8] | NDArray[np.float32]:
    """Decode an image, upright, to 8 bits per channel or, if `deep`, to the values that are stored.

    Three channels are RGB, one is grey, both converted from whatever is stored and turned as the
    EXIF orientation says.  Four are RGBA: the image must have them, and is taken as stored.  Of
    several frames the first counts.  Without `upright` the EXIF orientation is ignored.

    Eight bits are the upper ones of 16; `deep` gives float32, up to 255 or 65535, or whatever a
    TIFF of floating point or signed numbers holds, for 1 or 3 channels: nothing is scaled and no
    bit is lost.  The limits are those of `complete_limits`.

    MXNet decodes the same pixels, but fills what is missing of a truncated JPEG with grey.
    """
    view = memoryview(data)
    known = complete_limits(limits)
    row = row_of(view)
    row.check_end(view)
    if deep:
        return _decode_values(view, row, channels, known, upright)
    if is_foreign(row):
        pixels = by_pillow.decode(view, row, known, upright and channels != 4)
        return _with_channels(pixels, channels)
    return _decode_with_opencv(view, channels, known, upright)


def upright_size(data: Buffer) -> tuple[int, int]:
    """Read width and height of an image as `decode` gives it, without decoding it.

    The orientation of WebP is heeded by our own decoder; where there is none, and for AVIF, it
    depends on who decodes: `by_pillow` tried.

    >>> import cv2
    >>> upright_size(cv2.imencode(".jpg", np.zeros((2, 3, 3), "uint8"))[1].tobytes())
    (3, 2)
    """
    width, height = image_size(data)
    kind = row_of(data).kind
    heeded = (kind == "webp" and webp.available()) or by_pillow.uprights(kind)
    return (height, width) if heeded and is_turned(data) else (width, height)


def describe() -> str:
    """Say which decoder decodes what.

    >>> "OpenCV" in describe()
    True
    """
    decoders, missing = [], []
    if jpeg.available():
        entropy = jpeg.entropy_decoder()
        decoders.append(f"{jpeg.library()} (region and scale, entropy decoder: {entropy}) for JPEG")
    else:
        missing.append("for faster JPEG those of libjpeg-turbo (apt install libjpeg62-turbo-dev)")
    if png.decoder() == "own":
        decoders.append("our own (region) for PNG")
    if webp.available():
        decoders.append(f"{webp.library()} (region) for WebP")
    else:
        missing.append("for faster WebP those of libwebp (apt install libwebp-dev)")
    rest = "everything else" if decoders else "everything"
    if by_opencv.available():
        decoders.append(f"OpenCV {by_opencv.version()} for {rest}")
    else:
        decoders.append(
            f"Pillow for {rest}, with slower resizing and drawing in tools; {command('cv2')} "
            "brings OpenCV"
        )
    text = ", ".join(decoders)
    if missing:
        text += f"; install a wheel, or headers and build again: {', '.join(missing)}"
    return text


def is_foreign(row: Format) -> bool:
    """Return True for a format that OpenCV does not read here."""
    return not by_opencv.available() or (
        bool(row.sample) and by_pillow.reader_of(row.kind) != "OpenCV"
    )


def _with_channels(pixels: NDArray[Any], channels: int) -> NDArray[Any]:
    """Return grey, RGB or RGBA pixels with other channels."""
    found = pixels.shape[2]
    if found == channels:
        return pixels
    if channels == 4:
        raise _lacks_channels(found)
    if found == 1:
        return np.repeat(pixels, 3, 2)
    colours = np.ascontiguousarray(pixels[:, :, :3])
    if channels == 3:
        return colours
    return grey_of(colours)


def grey_of(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return grey pixels of RGB ones, (height, width, 1): those of OpenCV's ``cvtColor``.

    Where OpenCV is not installed they are those of its decoders, which round in another way.
    """
    red, green, blue = (colours[:, :, i].astype(np.int32) for i in range(3))
    if by_opencv.available():
        grey = (9798 * red + 19235 * green + 3735 * blue + 16384) >> 15
    else:
        grey = (4899 * red + 9617 * green + 1868 * blue + 8192) >> 14
    return grey.astype(np.uint8)[:, :, None]


def _lacks_channels(found: int) -> ImageDecodeError:
    return ImageDecodeError(f"the image has {found} channels, not the 4 that were asked for")


def _decode_values(
    data: memoryview, row: Format, channels: int, limits: dict[str, int], upright: bool
) -> NDArray[np.float32]:
    """Decode to float32, with every bit."""
    if not by_opencv.available():
        return _values_of_pillow(data, row, channels, limits, upright)
    import cv2

    if is_foreign(row):
        raise ImageDecodeError(f"{row.name} has 8 bits here: ask for uint8, or store PNG or TIFF")
    flag = cv2.IMREAD_GRAYSCALE if channels == 1 else cv2.IMREAD_COLOR
    flag |= 0 if upright else cv2.IMREAD_IGNORE_ORIENTATION
    pixels = _by_opencv(data, flag | cv2.IMREAD_ANYDEPTH, limits)
    if channels == 3:
        pixels = pixels[:, :, ::-1]
    return _as_float32(pixels.reshape(*pixels.shape[:2], channels))


def _values_of_pillow(
    data: memoryview, row: Format, channels: int, limits: dict[str, int], upright: bool
) -> NDArray[np.float32]:
    """Decode to float32 by Pillow."""
    pixels = by_pillow.decode(data, row, limits, upright, deep=True)
    if pixels.dtype == np.uint8 or pixels.shape[2] == channels:
        return _as_float32(_with_channels(pixels, channels))
    return _as_float32(np.repeat(pixels, 3, 2))  # only grey has more than 8 bits


def _as_float32(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Return the values as they are, or raise an error."""
    values = np.ascontiguousarray(pixels, np.float32)
    if not np.can_cast(pixels.dtype, np.float32) and not np.array_equal(
        values, pixels, equal_nan=True
    ):
        raise ImageDecodeError(f"the image holds {pixels.dtype} values that float32 cannot")
    return values


def _by_opencv(data: memoryview, mode: int, limits: dict[str, int]) -> NDArray[Any]:
    """Decode by OpenCV, after a look at the cost."""
    check_for_opencv(data, limits)
    pixels = by_opencv.imdecode(data, mode)
    if pixels is None:
        raise ImageDecodeError("OpenCV cannot decode the image: damaged, truncated or unsupported")
    return pixels


def _decode_with_opencv(
    data: memoryview, channels: int, limits: dict[str, int], upright: bool
) -> NDArray[np.uint8]:
    """Decode with OpenCV to 8 bits."""
    import cv2

    flags = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}[channels]
    if not upright and channels != 4:  # IMREAD_UNCHANGED is -1, all bits
        flags |= cv2.IMREAD_IGNORE_ORIENTATION
    pixels: Any = _by_opencv(data, flags, limits)
    if channels == 1:
        return pixels.reshape(pixels.shape[0], pixels.shape[1], 1)
    if channels == 3:
        return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
    if pixels.ndim != 3 or pixels.shape[2] != 4:
        raise _lacks_channels(1 if pixels.ndim == 2 else pixels.shape[2])
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        raise ImageDecodeError(f"the image has {pixels.dtype} channels; store it with 8 bits")
    return cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGBA)
