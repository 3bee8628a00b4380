"""Width and height of an encoded image from its header, and the limits on what it may cost.

A few bytes can announce any number of pixels, and whoever decodes takes memory for all of them.
Nothing is decoded here; Pillow reads the headers of formats that are not common.  What else costs a
decoder memory or time is looked at for the same reason: frames and tiles that are larger than the
picture, the scans of JPEG images, and the lengths of PNG chunks.
"""

from __future__ import annotations

import io
import struct

from recordio.errors import ImageDecodeError
from recordio.extras import need
from recordio.formats import jpeg_limits
from recordio.formats.avif import avif_frames, avif_size
from recordio.formats.format_sizes import jxl_size, tiff_size, tiff_tile, webp_size
from recordio.formats.jpeg_limits import DEFAULT_LIMITS

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "FORMATS",
    "check_chunks",
    "check_for_opencv",
    "check_limits",
    "check_pixels",
    "complete_limits",
    "image_size",
    "open_image",
    "open_within_limits",
    "png_chunks",
]

#: More pixels are refused where nothing else is asked for; by `recordio.formats`, too.
DEFAULT_MAX_PIXELS = DEFAULT_LIMITS["max_pixels"]
#: What a limit is that was lifted.
NO_LIMIT = (1 << 63) - 1

#: Formats of Pillow that OpenCV may know as well.
FORMATS = ("BMP", "DIB", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "SUN", "TIFF", "WEBP", "AVIF")
_PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
#: Bytes in the chunks of animations that OpenCV reads without looking how many there are.
_PNG_LENGTHS = {b"acTL": 8, b"fcTL": 26}
#: What other formats begin with, at which place, and what finds the size in them.
_STARTS = (
    (8, b"WEBP", webp_size),
    (4, b"ftypavi", avif_size),
    (0, b"\xff\x0a", jxl_size),
    (0, b"\0\0\0\x0cJXL \r\n\x87\n", jxl_size),
    (0, b"II*\0", tiff_size),
    (0, b"MM\0*", tiff_size),
)
#: The same for what may be larger than the picture: a decoder takes memory for that.
_PARTS = (
    (4, b"ftypavi", avif_frames),
    (0, b"II*\0", lambda view: filter(None, [tiff_tile(view)])),
    (0, b"MM\0*", lambda view: filter(None, [tiff_tile(view)])),
)
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_SEGMENTS = frozenset(range(0xC0, 0xFF)) - frozenset(range(0xD0, 0xDB))


def open_image(file, formats=None):
    """Open an image with Pillow, which reads its header, whatever size that announces.

    ``PIL.Image.open`` has a limit of its own, which is no parameter: it belongs to the process.  Of
    the common formats that limit holds here for WebP alone, whose plugin looks at it, too.

    Parameters
    ----------
    file : binary file
        At its start.
    formats : sequence of str, optional
        Formats to try; by default all that Pillow knows.

    Returns
    -------
    PIL.Image.Image
        Not yet decoded; its `size` is known.

    Raises
    ------
    ImageDecodeError
        If the format is unknown or the header is damaged.
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


def _behind_wide_header(start):
    """What to add to an error where an image begins late, as behind a header of 32 bytes."""
    for place in range(8, 28, 4):  # behind one label in the header, or up to four after it
        if start[place : place + 3] == b"\xff\xd8\xff" or start[place : place + 4] == b"\x89PNG":
            return (
                f": one begins {place} bytes later, as behind a header of 32 bytes with labels of "
                "64 bits, which `recordio narrow` turns into the usual one"
            )
    return ""


def image_size(data):
    """Read width and height from the header of an image.

    Parameters
    ----------
    data : bytes-like
        The file.

    Returns
    -------
    tuple of int
        ``(width, height)`` in pixels, as stored.

    Raises
    ------
    ImageDecodeError
        If the format is unknown or its header is damaged.

    Examples
    --------
    >>> import cv2, numpy
    >>> image_size(cv2.imencode(".png", numpy.zeros((2, 3), "uint8"))[1].tobytes())
    (3, 2)
    """
    view = memoryview(data).cast("B")
    size = _png_size(view) or _jpeg_size(view)
    for place, start, find in _STARTS if size is None else ():
        if view[place : place + len(start)] == start:
            size = find(view)
    if size is None:
        with open_image(io.BytesIO(view), FORMATS) as image:
            size = image.size
    return size


def check_pixels(size, max_pixels=DEFAULT_MAX_PIXELS, lift="max_pixels"):
    """Refuse an image that is too large.

    Parameters
    ----------
    size : tuple of int
        ``(width, height)`` in pixels.
    max_pixels : int or None
        The limit; None for no limit.
    lift : str
        What raises the limit, for the error.

    Raises
    ------
    ImageDecodeError
        If it has more pixels.

    Examples
    --------
    >>> check_pixels((60000, 60000))
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the image is too large (60000 x 60000 pixels are more than ...
    """
    width, height = size
    if max_pixels is not None and width * height > max_pixels:
        raise ImageDecodeError(
            f"the image is too large ({width} x {height} pixels are more than the limit of "
            f"{max_pixels}); raise {lift} if it is meant"
        )


def complete_limits(limits):
    """All limits on an image: those that are given, and the defaults.

    Parameters
    ----------
    limits : dict of str to int or None
        By name; None lifts a limit.

    Returns
    -------
    dict of str to int
        Of `max_pixels`, `max_scans` and `max_scan_pixels`.

    Raises
    ------
    TypeError
        If there is no limit of some name.

    Examples
    --------
    >>> complete_limits({"max_scans": 9})
    {'max_pixels': 67108864, 'max_scans': 9, 'max_scan_pixels': 2147483648}
    """
    if unknown := [name for name in limits if name not in DEFAULT_LIMITS]:
        raise TypeError(f"the limits are {', '.join(DEFAULT_LIMITS)}, not {', '.join(unknown)}")
    lifted = {name: NO_LIMIT for name, value in limits.items() if value is None}
    return {**DEFAULT_LIMITS, **limits, **lifted}


def check_limits(data, size, limits, lift="max_pixels"):
    """Refuse an image that would take its decoder too much memory or time.

    This is what every decoder of this package asks first, whatever its library is.

    Parameters
    ----------
    data : bytes-like
        The file.
    size : tuple of int
        ``(width, height)`` in pixels, as the decoder finds it.
    limits : dict of str to int or None
        As for `complete_limits`.
    lift : str
        What raises the limit on pixels, for the error.

    Raises
    ------
    ImageDecodeError
        If the image, a frame or tile of it, or the scans of a JPEG image exceed a limit.

    Examples
    --------
    >>> check_limits(b"GIF89a", (60, 40), {"max_pixels": 2400})
    """
    limits = complete_limits(limits)
    view = memoryview(data).cast("B")
    check_pixels(size, limits["max_pixels"], lift)
    for place, start, find in _PARTS:
        if view[place : place + len(start)] == start:
            for part in find(view):
                check_pixels(part, limits["max_pixels"], lift)
    jpeg_limits.check_limits(view, **{**limits, "max_pixels": NO_LIMIT})


def open_within_limits(data, limits, formats=None):
    """Open an image with Pillow, if it may be decoded.

    Parameters
    ----------
    data : bytes-like
        The file.
    limits : dict of str to int or None
        As for `complete_limits`.
    formats : sequence of str, optional
        As for `open_image`.

    Returns
    -------
    PIL.Image.Image
        Not yet decoded.

    Raises
    ------
    ImageDecodeError
        As from `open_image` and `check_limits`.
    """
    image = open_image(io.BytesIO(data), formats)
    check_limits(data, image.size, limits)
    return image


def check_for_opencv(data, limits, lift="max_pixels"):
    """Refuse what would cost OpenCV too much, by its limits or by a PNG chunk that is too long.

    Parameters
    ----------
    data, limits, lift
        As for `check_limits`.

    Raises
    ------
    ImageDecodeError
        If the size cannot be read, and as from `check_limits` and `check_chunks`.

    Examples
    --------
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


def png_chunks(view):
    """The chunks of a PNG file, as far as their lengths lead.

    Parameters
    ----------
    view : memoryview
        The file.

    Yields
    ------
    kind : bytes
    at : int
        Where it begins.
    size : int
        The length that it announces, without the 12 bytes around its content.
    """
    at = 8
    while at + 4 <= len(view):
        size = int.from_bytes(view[at : at + 4], "big")
        yield bytes(view[at + 4 : at + 8]), at, size
        at += 12 + size


def check_chunks(data):
    """Refuse a PNG file with a chunk that is longer than what is left of the file.

    To be called before OpenCV decodes.  From version 4.11 on it takes memory for as many bytes as a
    chunk announces, up to 4 GiB, and version 4.11 writes beyond it where that number overflows.

    Parameters
    ----------
    data : bytes-like
        The file; of other formats nothing is looked at.

    Raises
    ------
    ImageDecodeError
        If a chunk of the first image is too long, or one of an animation has another length than
        it must have.

    Examples
    --------
    >>> import cv2, numpy
    >>> content = cv2.imencode(".png", numpy.zeros((2, 3), "uint8"))[1].tobytes()
    >>> check_chunks(content)
    >>> check_chunks(content[:50])
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the PNG image is truncated (its chunk IDAT at byte 33 has ...
    """
    view = memoryview(data).cast("B")
    if view[:8] != _PNG_START[:8]:
        return
    has_pixels = False
    for kind, at, length in png_chunks(view):
        name = kind.decode("ascii", "backslashreplace")
        if length > len(view) - at - 12:
            raise ImageDecodeError(
                f"the PNG image is truncated (its chunk {name} at byte {at} has {length} bytes, "
                f"and the file has {len(view)}); pack it again from its source"
            )
        if length != _PNG_LENGTHS.get(kind, length):
            raise ImageDecodeError(
                f"the PNG image is damaged (its chunk {name} at byte {at} has {length} bytes, not "
                f"{_PNG_LENGTHS[kind]}); pack it again from its source"
            )
        has_pixels |= kind == b"IDAT"
        # Without pixels OpenCV goes on after the end; it does not decode the second frame.
        if has_pixels and kind in (b"IEND", b"fcTL"):
            return


def _png_size(view):
    """The size of a PNG file, whose first chunk is always the same; None for what is none."""
    if len(view) < 24 or view[:16] != _PNG_START:
        return None
    return int.from_bytes(view[16:20], "big"), int.from_bytes(view[20:24], "big")


def _jpeg_size(view):
    """The size of a JPEG file of the usual structure; None for anything else."""
    if len(view) < 4 or view[:2] != b"\xff\xd8":
        return None
    at = 2
    while at + 9 <= len(view) and view[at] == 0xFF:
        marker = view[at + 1]
        if marker in _JPEG_FRAMES:
            width, height = int.from_bytes(view[at + 7 : at + 9], "big"), view[at + 5] << 8
            return width, height | view[at + 6]
        if marker not in _JPEG_SEGMENTS:
            return None
        at += 2 + int.from_bytes(view[at + 2 : at + 4], "big")
    return None
