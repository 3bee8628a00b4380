"""WebP, AVIF and JPEG XL where OpenCV was built without them: decoded by Pillow, if it can.

`general` asks here first.  Other formats are none of this module's business.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.extras import need
from recordio.formats.image_size import check_limits, image_size, open_within_limits

__all__ = ["FORMATS", "decode", "describe", "reader_of", "turns"]


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
    sample : str
        An image of one pixel, or of two and to be turned by a quarter, in base 64, to try it with.
    """

    name: str
    pillow_name: str
    module: str
    install: str
    sample: str


#: By the kinds of `recordio.formats.kinds`.
FORMATS = {
    "webp": Format(
        "WebP",
        "WEBP",
        "PIL._webp",
        "pillow",
        "UklGRk4AAABXRUJQVlA4WAoAAAAIAAAAAQAAAAAAVlA4TA4AAAAvAQAAAAcQEf0PRET/A0VYSUYaAAAATU0AKg"
        "AAAAgAAQESAAMAAAABAAYAAAAAAAA=",
    ),
    "avif": Format(
        "AVIF",
        "AVIF",
        "PIL._avif",
        "'pillow>=11.3'",
        "AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAPNtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAA"
        "AAAAAAAAAAAAAAAA5waXRtAAAAAAABAAAAHmlsb2MAAAAARAAAAQABAAAAAQAAARcAAAAcAAAAKGlpbmYAAAAA"
        "AAEAAAAaaW5mZQIAAAAAAQAAYXYwMUNvbG9yAAAAAHJpcHJwAAAAUmlwY28AAAAUaXNwZQAAAAAAAAACAAAAAQ"
        "AAAA5waXhpAAAAAAEIAAAADGF2MUOBABwAAAAAE2NvbHJuY2x4AAEADQAGgAAAAAlpcm90AwAAABhpcG1hAAAA"
        "AAAAAAEAAQUBAoMEhQAAACRtZGF0EgAKBxgAJtgIaDUyDxTGZQAB5QAASFrZn1cDjQ==",
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
    if _by_opencv(kind) is not None:
        return "OpenCV"
    return "Pillow" if importlib.util.find_spec(FORMATS[kind].module) else ""


def turns(kind: str) -> bool:
    """Whether images are turned as their orientation says, by whoever reads them here.

    Parameters
    ----------
    kind : str
        One of `FORMATS`.

    Returns
    -------
    bool

    Examples
    --------
    >>> turns("jxl")
    True
    """
    return reader_of(kind) != "OpenCV" or _opencv_turns(kind)


@functools.cache
def _opencv_turns(kind: str) -> bool:
    pixels = _by_opencv(kind)
    return pixels is not None and pixels.shape[0] > pixels.shape[1]


def _by_opencv(kind: str) -> NDArray[np.uint8] | None:
    """What OpenCV makes of the sample of a format; None if it is not there, or cannot read it."""
    try:  # free-threaded interpreters have no OpenCV yet
        import cv2
    except ModuleNotFoundError:
        return None
    sample = np.frombuffer(base64.b64decode(FORMATS[kind].sample), np.uint8)
    pixels: Any = cv2.imdecode(sample, cv2.IMREAD_COLOR)
    return pixels


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


def decode(data: memoryview, kind: str, channels: int, limits: dict[str, int]) -> NDArray[np.uint8]:
    """Decode an image of a format that OpenCV does not read here.

    Parameters
    ----------
    data : memoryview
        The file.
    kind : str
        One of `FORMATS`.
    channels : {3, 1, 4}
        As for `recordio.formats.general.decode`, and upright like that.
    limits : dict of str to int
        Images that exceed one are refused before anything is decoded.

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

    check_limits(data, image_size(data), limits)
    with open_within_limits(data, limits, (found.pillow_name,)) as image:
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
