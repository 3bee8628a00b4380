"""Images encoded behind an image header, and decoded again: MXNet's `pack_img` and `unpack_img`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.formats.decode import decode_as_opencv
from recordio.formats.encode import encode_as_opencv
from recordio.formats.image_header import check_limits, complete_limits, read_header
from recordio.header import IRHeader, pack, unpack

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package


def pack_img(
    header: tuple[Any, ...], img: NDArray[Any], quality: int = 95, img_fmt: str = ".jpg"
) -> bytes:
    """Encode an image and put an image header in front of it.

    Parameters
    ----------
    header : IRHeader or tuple of 4
        As for `pack`.
    img : numpy.ndarray, shape (height, width) or (height, width, 3 or 4)
        Grey, BGR or BGRA, as OpenCV orders channels.
    quality : int
        JPEG: quality, 0 to 100.  PNG: compression level, 0 to 9, so that the default means 9, the
        slowest.  Values out of range are clamped.
    img_fmt : str
        Suffix of the format with its dot: ``.jpg``, ``.jpeg``, ``.png``, or another that OpenCV
        writes, with its defaults. JPEG is encoded without the GIL, to the bytes of OpenCV. If
        OpenCV is not installed, PNG has the same pixels, and Pillow writes other formats.

    Returns
    -------
    bytes
        The payload of a record.

    Raises
    ------
    cv2.error
        If OpenCV cannot encode the image or does not know the format; a ValueError if OpenCV is
        not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from recordio import IRHeader
    >>> record = pack_img(IRHeader(0, 1.0, 5, 0), np.zeros((4, 6, 3), np.uint8), img_fmt=".png")
    >>> header, image = unpack_img(record)
    >>> header.id, image.shape
    (5, (4, 6, 3))
    """
    return pack(header, encode_as_opencv(img, img_fmt, quality))


def unpack_img(
    s: Buffer, iscolor: int = -1, **limits: int | None
) -> tuple[IRHeader, NDArray[Any] | None]:
    """Split a record into image header and decoded image.

    Parameters
    ----------
    s : bytes-like
        The payload of a record.
    iscolor : int
        OpenCV's mode.  -1: as stored (alpha and 16 bits kept, EXIF orientation ignored); 0: grey;
        1: BGR, EXIF orientation applied.
    **limits : int or None
        Images with more pixels than `max_pixels` are refused before anything is decoded, and JPEG
        images with more scans than `max_scans`, or more than `max_scan_pixels` in all of them.
        None for no limit.

    Returns
    -------
    header : IRHeader
        As from `unpack`.
    img : numpy.ndarray or None
        Shape (height, width) or (height, width, channels) in OpenCV's order (BGR).  **None if the
        content is no image that can be decoded**, is empty, or has an unreadable header; scripts
        written for MXNet test for None.

    Raises
    ------
    RecordHeaderError
        As from `unpack`.
    ImageDecodeError
        If the image exceeds a limit.

    Examples
    --------
    >>> from recordio import IRHeader, pack
    >>> print(unpack_img(pack(IRHeader(0, 1.0, 5, 0), b"no image"))[1])
    None
    """
    all_limits = complete_limits(limits)
    header, content = unpack(s)
    if not len(content):
        return header, None
    try:
        size = read_header(content).size
    except ImageDecodeError:
        return header, None
    check_limits(content, all_limits, size=size)
    try:
        return header, decode_as_opencv(content, iscolor, all_limits)
    except ImageDecodeError:
        return header, None
