"""Width and height of an encoded image from its header, and the limit on their product.

A few bytes can announce any number of pixels, and whoever decodes takes memory for all of them.
Nothing is decoded here; Pillow reads the headers of formats that are not common.  The lengths of
PNG chunks are looked at for the same reason: OpenCV takes memory for what they announce.
"""

from __future__ import annotations

import io
import struct

from recordio.errors import ImageDecodeError
from recordio.extras import need
from recordio.format_sizes import avif_size, jxl_size, tiff_size, webp_size

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "FORMATS",
    "check_chunks",
    "check_for_opencv",
    "check_pixels",
    "image_size",
    "open_image",
]

#: More pixels are refused where nothing else is asked for; by `iterators.images.codecs`, too.
DEFAULT_MAX_PIXELS = 1 << 26

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


def check_for_opencv(data, max_pixels=DEFAULT_MAX_PIXELS, lift="max_pixels"):
    """Refuse what would cost OpenCV too much: an image that is too large, or a PNG chunk that is.

    Parameters
    ----------
    data : bytes-like
        The file.
    max_pixels, lift
        As for `check_pixels`.

    Raises
    ------
    ImageDecodeError
        If the size cannot be read, and as from `check_pixels` and `check_chunks`.

    Examples
    --------
    >>> import cv2, numpy
    >>> content = cv2.imencode(".png", numpy.zeros((20, 30), "uint8"))[1].tobytes()
    >>> check_for_opencv(content)
    >>> check_for_opencv(content, max_pixels=500)
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the image is too large (30 x 20 pixels are more than ...
    """
    check_pixels(image_size(data), max_pixels, lift)
    check_chunks(data)


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
    at, kind, has_pixels = 8, b"", False
    # Without pixels OpenCV goes on after the end; the second frame of an animation is not decoded.
    while at + 4 <= len(view) and not (has_pixels and kind in (b"IEND", b"fcTL")):
        length, kind = int.from_bytes(view[at : at + 4], "big"), bytes(view[at + 4 : at + 8])
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
        at += 12 + length


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
