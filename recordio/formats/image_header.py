"""The header of any image, and limits on what its decoder may cost.

A few bytes can announce any number of pixels, and whoever decodes takes memory for all of them.
Nothing is decoded here: the table of formats says how each header is read, and Pillow reads those
of formats that are not common.  What else costs a decoder memory or time is looked at for the same
reason: frames and tiles that are larger than the picture, and the scans of JPEG images.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from recordio.errors import ImageDecodeError
from recordio.extras import need
from recordio.formats import jpeg_markers
from recordio.formats.headers import ImageHeader
from recordio.formats.jpeg_markers import DEFAULT_LIMITS, DEFAULT_MAX_PIXELS
from recordio.formats.table import FORMATS, Format, format_of

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from typing_extensions import Buffer  # nothing of it is installed with the package

__all__ = [
    "ANY_SIZE",
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "ImageHeader",
    "check_limits",
    "check_pixels",
    "complete_limits",
    "open_image",
    "open_with_plugin",
    "open_within_limits",
    "read_header",
]

ANY_SIZE = 2**62
#: What a limit is that was lifted.
NO_LIMIT = (1 << 63) - 1
#: Formats of Pillow itself that are tried for content of no known kind; two of them are in no row.
PILLOW_FORMATS = (
    *(row.pillow for row in FORMATS if row.pillow and row.module.startswith("PIL")),
    "DIB",
    "SUN",
)
#: Bits and channels by Pillow's names for them.
_PILLOW_MODES = {
    "1": (1, 1),
    "L": (8, 1),
    "LA": (8, 2),
    "P": (8, 3),
    "PA": (8, 4),
    "RGB": (8, 3),
    "RGBA": (8, 4),
    "CMYK": (8, 4),
    "I;16": (16, 1),
    "I": (32, 1),
    "F": (32, 1),
}
_EXIF_ORIENTATION = 0x0112


def read_header(data: Buffer) -> ImageHeader:
    r"""Read what an image says about itself: size, orientation, bits and channels.

    Everybody who needs one of these asks here, so that sizes and pixels cannot differ.

    >>> read_header(b"P6\n60 40\n255\n").size
    (60, 40)
    >>> read_header(b"text")
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: not an image of a known format
    """
    view = memoryview(data).cast("B")
    row = format_of(view)
    if row.header is not None:
        header = row.header(view)
        if header is None:
            raise ImageDecodeError(f"the header of the {row.name} image is damaged or truncated")
        return header
    with open_with_plugin(view, row) as image:
        orientation = image.getexif().get(_EXIF_ORIENTATION, 1)
        bits, channels = _PILLOW_MODES.get(image.mode, (None, None))
        numbers = "f" if image.mode == "F" else "u"
        return ImageHeader(
            *image.size,
            int(orientation) if orientation in range(2, 9) else 1,
            bits,
            channels,
            numbers=numbers,
        )


def open_with_plugin(view: memoryview, row: Format) -> PillowImage:
    """Open an image by Pillow's plugin for its format, which may have to be imported first."""
    if row.module != "PIL":
        need(row.module, f"reading {row.name} images")  # it makes itself known to Pillow
    return open_image(io.BytesIO(row.mended(view)), (row.pillow,) if row.pillow else PILLOW_FORMATS)


def open_image(file: BinaryIO, formats: Sequence[str] | None = None) -> PillowImage:
    """Open an image with Pillow, which reads its header, whatever size that announces.

    All formats that Pillow knows are tried if none are given.  ``PIL.Image.open`` has a limit of
    its own, which is no parameter: it belongs to the process.  Of the common formats that limit
    holds here for WebP alone, whose plugin looks at it, too.
    """
    Image = need("PIL.Image", "reading image files")
    start = file.read(16)
    reason = ""
    for initialise in (Image.preinit, Image.init):
        initialise()
        for name in formats or Image.ID:
            factory, accepts = Image.OPEN.get(name, (None, lambda start: False))
            try:
                accepted = accepts is None or accepts(start)
                if accepted and not isinstance(accepted, str):  # text says what is not installed
                    file.seek(0)
                    return factory(file, "")
            except (SyntaxError, IndexError, TypeError, struct.error) as error:
                reason = f"{name}: {error}" if formats and len(formats) == 1 else reason
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
    if reason:
        raise ImageDecodeError(
            f"the header of the image is damaged or unknown to Pillow ({reason})"
        )
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
    numbers = {name: NO_LIMIT if value is None else value for name, value in limits.items()}
    return {**DEFAULT_LIMITS, **numbers}


def check_limits(
    data: Buffer,
    limits: Mapping[str, int | None],
    lift: str = "max_pixels",
    size: tuple[int, int] | None = None,
) -> None:
    r"""Refuse an image that would take its decoder too much memory or time.

    This is what every decoder of this package asks first, whatever its library is: frames, tiles
    and the scans of JPEG images count as well.  `size` is that of the image, if it is known.

    >>> check_limits(b"P5\n60 40\n255\n", {"max_pixels": 2400})
    """
    all_limits = complete_limits(limits)
    view = memoryview(data).cast("B")
    if all_limits["max_pixels"] < NO_LIMIT:
        for part in (size or read_header(view).size, *format_of(view).parts(view)):
            check_pixels(part, all_limits["max_pixels"], lift)
    jpeg_markers.check_limits(view, **{**all_limits, "max_pixels": NO_LIMIT})


def open_within_limits(
    data: Buffer, limits: Mapping[str, int | None], formats: Sequence[str] | None = None
) -> PillowImage:
    """Open an image with Pillow, if it may be decoded."""
    image = open_image(io.BytesIO(data), formats)
    check_limits(data, limits, size=image.size)
    return image
