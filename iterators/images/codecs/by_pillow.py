"""WebP, AVIF and JPEG XL where OpenCV was built without them: decoded by Pillow, if it can.

`general` asks here first.  Other formats are none of this module's business.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib.util
import io
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.extras import need
from recordio.image_size import check_pixels, image_size, open_image

__all__ = ["FORMATS", "decode", "describe", "reader_of"]


class Format(NamedTuple):
    """A format that not every OpenCV reads.

    Attributes
    ----------
    name : str
        As in errors.
    pillow_name : str
        As `PIL.Image.open` calls it.
    module : str
        What has it decoded by Pillow.
    install : str
        What installs that.
    pixel : str
        An image of one pixel in base 64, to try it with.
    """

    name: str
    pillow_name: str
    module: str
    install: str
    pixel: str


#: By the kinds of `recordio.content`.
FORMATS = {
    "webp": Format(
        "WebP",
        "WEBP",
        "PIL._webp",
        "pillow",
        "UklGRh4AAABXRUJQVlA4TBEAAAAvAAAAAAdQhSLXo/+BiOh/AAA=",
    ),
    "avif": Format(
        "AVIF",
        "AVIF",
        "PIL._avif",
        "'pillow>=11.3'",
        "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADrbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGlj"
        "dAAAAAAAAAAAAAAAAAAAAAAOcGl0bQAAAAAAAQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAETAAAAJwAAAChp"
        "aW5mAAAAAAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAAAABqaXBycAAAAEtpcGNvAAAAFGlzcGUAAAAA"
        "AAAAAQAAAAEAAAAQcGl4aQAAAAADCAgIAAAADGF2MUOBAAwAAAAAE2NvbHJuY2x4AAEADQAGgAAAABdpcG1h"
        "AAAAAAAAAAEAAQQBAoMEAAAAL21kYXQSAAoIGAAGiAhoNCAyGRlHh4Yhh5555oAAAJBAyRxhQ82ZYKyK1o4i",
    ),
    "jxl": Format(
        "JPEG XL",
        "JXL",
        "pillow_jxl",
        "pillow-jxl-plugin",
        "/woAEBAJCAABACwASxiLFcJJluUMieI=",
    ),
}


@functools.cache
def reader_of(kind: str) -> str:
    """Who reads a format here.

    Parameters
    ----------
    kind : str
        One of `FORMATS`.

    Returns
    -------
    str
        ``"OpenCV"``, ``"Pillow"``, or ``""`` if neither does.

    Examples
    --------
    >>> reader_of("webp") in ("OpenCV", "Pillow")
    True
    """
    found = FORMATS[kind]
    with contextlib.suppress(ModuleNotFoundError):  # free-threaded interpreters have no OpenCV yet
        import cv2

        pixel = np.frombuffer(base64.b64decode(found.pixel), np.uint8)
        if cv2.imdecode(pixel, cv2.IMREAD_COLOR) is not None:
            return "OpenCV"
    return "Pillow" if importlib.util.find_spec(found.module) else ""


def describe() -> str:
    """Who reads what.

    Examples
    --------
    >>> "WebP" in describe()
    True
    """
    return ", ".join(
        f"{found.name}: {reader_of(kind) or f'nobody (pip install {found.install})'}"
        for kind, found in FORMATS.items()
    )


def decode(data: memoryview, kind: str, channels: int, max_pixels: int) -> NDArray[np.uint8]:
    """Decode an image of a format that OpenCV does not read here.

    Parameters
    ----------
    data : memoryview
        The file.
    kind : str
        One of `FORMATS`.
    channels : {3, 1, 4}
        As for `iterators.images.codecs.general.decode`, and upright like that.
    max_pixels : int
        Images with more pixels are refused before anything is decoded.

    Returns
    -------
    numpy.ndarray
        uint8 of shape (height, width, channels).

    Raises
    ------
    ImageDecodeError
        If the image is damaged or too large, has no four channels where they are asked for, or if
        there is no decoder; the error says what to install.
    """
    found = FORMATS[kind]
    if not reader_of(kind):
        raise ImageDecodeError(
            f"a {found.name} image, which neither OpenCV nor Pillow can decode here: "
            f"pip install {found.install}, or store another format"
        )
    importlib.import_module(found.module)  # a plugin makes itself known to Pillow
    from PIL import ImageOps

    check_pixels(image_size(data), max_pixels)
    with open_image(io.BytesIO(data), (found.pillow_name,)) as image:
        check_pixels(image.size, max_pixels)
        if channels == 4 and "A" not in image.getbands():
            raise ImageDecodeError(
                f"the image has {len(image.getbands())} channels, not the 4 that were asked for"
            )
        try:
            if channels == 4:
                return np.array(image.convert("RGBA"))
            pixels = np.array(ImageOps.exif_transpose(image).convert("RGB"))
        except MemoryError:
            raise
        except Exception as error:  # plugins raise what they like
            raise ImageDecodeError(f"the {found.name} image is damaged ({error})") from error
    if channels == 3:
        return pixels
    cv2 = need("cv2", "grey pixels of this format")
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)[:, :, None]
