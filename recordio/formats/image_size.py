"""Size, orientation and structure of an encoded image by its header, and limits on its cost.

A few bytes can announce any number of pixels, and whoever decodes takes memory for all of them.
Nothing is decoded here: the table of formats says how each header is read, and Pillow reads those
of formats that are not common.  What else costs a decoder memory or time is looked at for the same
reason: frames and tiles that are larger than the picture, the scans of JPEG images, and the lengths
of PNG chunks.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from recordio.errors import ImageDecodeError
from recordio.extras import need
from recordio.formats import jpeg_markers
from recordio.formats.headers import FIRST_TURNED
from recordio.formats.image_header import ImageHeader
from recordio.formats.jpeg_markers import DEFAULT_LIMITS, DEFAULT_MAX_PIXELS
from recordio.formats.table import FORMATS, row_of

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from typing_extensions import Buffer  # nothing of it is installed with the package

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "check_chunks",
    "check_for_opencv",
    "check_limits",
    "check_pixels",
    "complete_limits",
    "image_size",
    "is_turned",
    "open_image",
    "open_within_limits",
    "read_image_header",
    "upright_size",
]

#: What a limit is that was lifted.
NO_LIMIT = (1 << 63) - 1
#: Formats of Pillow itself that OpenCV may know as well; two of them are in no row.
PILLOW_FORMATS = (
    *(row.pillow for row in FORMATS if row.pillow and row.module.startswith("PIL")),
    "DIB",
    "SUN",
)


def open_image(file: BinaryIO, formats: Sequence[str] | None = None) -> PillowImage:
    """Open an image with Pillow, which reads its header, whatever size that announces.

    All formats that Pillow knows are tried if none are given.  ``PIL.Image.open`` has a limit of
    its own, which is no parameter: it belongs to the process.  Of the common formats that limit
    holds here for WebP alone, whose plugin looks at it, too.
    """
    Image = need("PIL.Image", "reading image files")
    start = file.read(16)
    for initialise in (Image.preinit, Image.init):
        initialise()
        for name in formats or Image.ID:
            factory, accepts = Image.OPEN.get(name, (None, lambda start: False))
            try:
                accepted = accepts is None or accepts(start)
                if accepted and not isinstance(accepted, str):  # text says what is not installed
                    file.seek(0)
                    return factory(file, "")
            except (SyntaxError, IndexError, TypeError, struct.error):
                continue  # what Pillow takes for another format
            except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
                raise ImageDecodeError(
                    f"the image is too large ({error}); raise PIL.Image.MAX_IMAGE_PIXELS if it is "
                    "meant"
                ) from None
            except MemoryError:
                raise
            except Exception as error:  # its plugins raise what they like on damaged headers
                raise ImageDecodeError(f"the header of the image is damaged ({error})") from error
    file.seek(0)
    raise ImageDecodeError(f"not an image of a known format{_behind_wide_header(file.read(64))}")


def _behind_wide_header(start: bytes) -> str:
    """Say more in an error where an image begins late, as behind a header of 32 bytes."""
    for at in range(8, 28, 4):  # behind one label in the header, or up to four after it
        if start[at : at + 3] == b"\xff\xd8\xff" or start[at : at + 4] == b"\x89PNG":
            return (
                f": one begins {at} bytes later, as behind a header of 32 bytes with labels of "
                "64 bits, which `recordio narrow` turns into the usual one"
            )
    return ""


def image_size(data: Buffer) -> tuple[int, int]:
    """Read width and height, as stored, from the header of an image.

    >>> import cv2, numpy
    >>> image_size(cv2.imencode(".png", numpy.zeros((2, 3), "uint8"))[1].tobytes())
    (3, 2)
    """
    view = memoryview(data).cast("B")
    size = row_of(view).size(view)
    if size is None:
        with open_image(io.BytesIO(view), PILLOW_FORMATS) as image:
            size = image.size
    return size


def is_turned(data: Buffer) -> bool:
    """Return True if the orientation of an image exchanges its width and height.

    It is False for formats without an orientation, too.  Not every decoder heeds every orientation.
    """
    view = memoryview(data).cast("B")
    return row_of(view).orientation(view) >= FIRST_TURNED


def upright_size(data: Buffer) -> tuple[int, int]:
    """Read width and height from the header of an image, turned upright.

    >>> import cv2, numpy
    >>> upright_size(cv2.imencode(".png", numpy.zeros((2, 3), "uint8"))[1].tobytes())
    (3, 2)
    """
    width, height = image_size(data)
    return (height, width) if is_turned(data) else (width, height)


def read_image_header(data: bytes) -> ImageHeader | None:
    """Read the header of a JPEG, PNG or PNM file and check that the file is complete.

    A JPEG file must have the marker that ends the image, a PNG file the right checksums of all that
    is decoded.  None stands for other formats, for a JPEG of unusual structure and for PNM other
    than P5 and P6 with a largest value of 255: only a decoder can tell.
    """
    if not data:
        raise ImageDecodeError("the file is empty")
    return row_of(data).header(data)


def check_pixels(
    size: tuple[int, int], max_pixels: int | None = DEFAULT_MAX_PIXELS, lift: str = "max_pixels"
) -> None:
    """Refuse an image that is too large; `lift` is what raises the limit, for the error.

    >>> check_pixels((60000, 60000))
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the image is too large (60000 x 60000 pixels are more than ...
    """
    width, height = size
    if max_pixels is not None and width * height > max_pixels:
        raise ImageDecodeError(
            f"the image is too large ({width} x {height} pixels are more than the limit of "
            f"{max_pixels}); raise {lift} to allow it"
        )


def complete_limits(limits: Mapping[str, Any]) -> dict[str, int]:
    """Return all limits on an image: those that are given, None lifting one, and the defaults.

    >>> complete_limits({"max_scans": 9})
    {'max_pixels': 67108864, 'max_scans': 9, 'max_scan_pixels': 2147483648}
    """
    if unknown := [name for name in limits if name not in DEFAULT_LIMITS]:
        raise TypeError(f"the limits are {', '.join(DEFAULT_LIMITS)}, not {', '.join(unknown)}")
    lifted = {name: NO_LIMIT for name, value in limits.items() if value is None}
    given = {name: value for name, value in limits.items() if value is not None}
    return {**DEFAULT_LIMITS, **given, **lifted}


def check_limits(
    data: Buffer,
    size: tuple[int, int],
    limits: Mapping[str, int | None],
    lift: str = "max_pixels",
) -> None:
    """Refuse an image that would take its decoder too much memory or time.

    This is what every decoder of this package asks first, whatever its library is: `size` is as the
    decoder finds it, and frames, tiles and the scans of JPEG images count as well.

    >>> check_limits(b"GIF89a", (60, 40), {"max_pixels": 2400})
    """
    known = complete_limits(limits)
    view = memoryview(data).cast("B")
    for part in (size, *row_of(view).parts(view)):
        check_pixels(part, known["max_pixels"], lift)
    jpeg_markers.check_limits(view, **{**known, "max_pixels": NO_LIMIT})


def open_within_limits(
    data: Buffer, limits: Mapping[str, int | None], formats: Sequence[str] | None = None
) -> PillowImage:
    """Open an image with Pillow, if it may be decoded."""
    image = open_image(io.BytesIO(data), formats)
    check_limits(data, image.size, limits)
    return image


def check_chunks(data: Buffer) -> None:
    """Refuse a file that OpenCV must not get, whatever its size: a PNG file with too long a chunk.

    >>> import cv2, numpy
    >>> content = cv2.imencode(".png", numpy.zeros((2, 3), "uint8"))[1].tobytes()
    >>> check_chunks(content)
    >>> check_chunks(content[:50])
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the PNG image is truncated (its chunk IDAT at byte 33 has ...
    """
    view = memoryview(data).cast("B")
    row_of(view).check_for_opencv(view)


def check_for_opencv(
    data: Buffer, limits: Mapping[str, int | None], lift: str = "max_pixels"
) -> None:
    """Refuse what would cost OpenCV too much, by its limits or by a PNG chunk that is too long.

    >>> import cv2, numpy
    >>> content = cv2.imencode(".png", numpy.zeros((20, 30), "uint8"))[1].tobytes()
    >>> check_for_opencv(content, {})
    >>> check_for_opencv(content, {"max_pixels": 500})
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the image is too large (30 x 20 pixels are more than ...
    """
    check_limits(data, image_size(data), limits, lift)
    check_chunks(data)
