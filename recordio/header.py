"""The image header in front of a record's content: labels and ids, packed as MXNet packs them.

Pure functions over bytes.  This module opens no file, and OpenCV is imported only by the two
functions that encode and decode an image.
"""

from __future__ import annotations

import numbers
import struct
from collections import namedtuple

import numpy as np

from recordio.errors import ImageDecodeError, RecordHeaderError
from recordio.extras import need
from recordio.frames.head import HEAD
from recordio.image_size import NO_LIMIT, check_chunks, check_limits, complete_limits, image_size

__all__ = ["IRHeader", "pack", "pack_img", "unpack", "unpack_img"]

HEADER = struct.Struct("<IfQQ")
#: The same for NumPy, and with the head of the record's first part before it.
HEADER_FIELDS = np.dtype([("flag", "<u4"), ("label", "<f4"), ("id", "<u8"), ("id2", "<u8")])
FRAMED_HEADER = np.dtype([*HEAD.descr, *HEADER_FIELDS.descr])
#: Where the label and the id stand in it, in bytes.
LABEL_OFFSET, ID_OFFSET = 4, 8
#: The same with labels of 64 bits, as ``struct.pack("IdQQ", ...)`` lays it out: 4 bytes are unused.
WIDE_HEADER = struct.Struct("<IIdQQ")

IRHeader = namedtuple("IRHeader", ["flag", "label", "id", "id2"])
IRHeader.__doc__ = """Header of an image record, stored in 24 bytes.

Parameters
----------
flag : int
    0: one label, stored in the header.  n > 0: a vector of n labels follows the header.
label : float or array of float32, shape (n,)
    The label, or the labels.
id : int
    Image id, 0 to 2**64 - 1.
id2 : int
    High half of a 128-bit id, normally 0.

Examples
--------
>>> IRHeader(0, 3.0, 7, 0)
IRHeader(flag=0, label=3.0, id=7, id2=0)
"""


def pack(header, s):
    """Put an image header in front of content.

    The rules are MXNet's, except for labels that are no numbers: it stores NaN for None and parses
    strings; here both are errors.

    Parameters
    ----------
    header : IRHeader or tuple of 4
        ``(flag, label, id, id2)``.  A number as `label` is stored in the header and `flag` becomes
        0; a list, tuple or array (a 0-d one too) is flattened, stored as float32 behind the header,
        and `flag` becomes the number of its elements.
    s : bytes or bytearray
        The content, an encoded image for instance.

    Returns
    -------
    bytes
        The payload of a record.

    Raises
    ------
    TypeError
        If `header` has not 4 items, `label` is no number and no array of numbers, or `s` is a str.
    struct.error
        If an id is no integer in 0 to 2**64 - 1.

    Examples
    --------
    >>> pack(IRHeader(0, 3.0, 7, 0), b"image").hex(" ", -8)
    '0000000000004040 0700000000000000 0000000000000000 696d616765'
    >>> unpack(pack(IRHeader(0, [1, 2.5], 8, 0), b"image"))[0].flag
    2
    """
    _, label, id, id2 = IRHeader(*header)
    if isinstance(label, numbers.Number):
        return HEADER.pack(0, label, id, id2) + s
    labels = _as_labels(label)
    return HEADER.pack(labels.size, 0.0, id, id2) + labels.tobytes() + s


def _as_labels(label):
    labels = np.asarray(label)
    if labels.dtype.kind == "O" and all(isinstance(item, numbers.Real) for item in labels.flat):
        labels = labels.astype(np.float32)
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"a label must be a number or an array of numbers, not {label!r:.60}")
    return labels.astype("<f4")


def unpack(s, label_dtype="float32"):
    """Split a record into image header and content.

    Parameters
    ----------
    s : bytes, bytearray or memoryview
        The payload of a record.
    label_dtype : {"float32", "float64"}
        The type in which labels are stored.  "float64" stands for the header of 32 bytes that some
        face-recognition code writes (`struct` format ``IdQQ``), to which labels of 8 bytes belong.

    Returns
    -------
    header : IRHeader
        Its `label` is a float where `flag` is 0, else a read-only float32 array of shape
        ``(flag,)`` that views `s`.
    content : same type as `s`
        What follows the header.

    Raises
    ------
    RecordHeaderError
        If `s` is shorter than the header (24 bytes) and the labels that it announces.  It is a
        ValueError and a struct.error, the two that MXNet's function raises.  With "float64" also
        if the 4 bytes are not zero that such a header does not use.
    ValueError
        For another `label_dtype`.

    Examples
    --------
    >>> unpack(pack(IRHeader(0, 3.0, 7, 0), b"image"))
    (IRHeader(flag=0, label=3.0, id=7, id2=0), b'image')
    >>> unpack(struct.pack("IdQQ", 0, 16777217, 7, 0) + b"image", label_dtype="float64")
    (IRHeader(flag=0, label=16777217.0, id=7, id2=0), b'image')
    """
    if label_dtype != "float32":
        return _unpack_wide(s, label_dtype)
    size = memoryview(s).nbytes
    if size < HEADER.size:
        raise RecordHeaderError(
            f"{size} bytes are too few for an image header of {HEADER.size} bytes"
        )
    header = IRHeader._make(HEADER.unpack_from(s))
    if header.flag == 0:
        return header, s[HEADER.size :]
    return _with_labels(s, header, HEADER.size, np.dtype("<f4"))


def _unpack_wide(s, label_dtype):
    """Split a record into a header of 32 bytes and content."""
    if label_dtype != "float64":
        raise ValueError(f"label_dtype={label_dtype!r}: expected 'float32' or 'float64'")
    size = memoryview(s).nbytes
    if size < WIDE_HEADER.size:
        raise RecordHeaderError(
            f"{size} bytes are too few for an image header of {WIDE_HEADER.size} bytes"
        )
    flag, unused, label, id, id2 = WIDE_HEADER.unpack_from(s)
    if unused:
        raise RecordHeaderError("its labels are not stored as float64: bytes 4 to 7 are not zero")
    header = IRHeader(flag, label, id, id2)
    if flag == 0:
        return header, s[WIDE_HEADER.size :]
    return _with_labels(s, header, WIDE_HEADER.size, np.dtype("<f8"))


def _with_labels(s, header, begin, dtype):
    """A header with the labels that follow it, and the content behind them."""
    size = memoryview(s).nbytes
    end = begin + dtype.itemsize * header.flag
    if size < end:
        raise RecordHeaderError(
            f"the header announces {header.flag} labels, but {size - begin} bytes follow",
            record_id=header.id,
        )
    labels = np.frombuffer(s, dtype, header.flag, begin)
    labels.flags.writeable = False
    return header._replace(label=labels), s[end:]


def pack_img(header, img, quality=95, img_fmt=".jpg"):
    """Encode an image and put an image header in front of it.

    Parameters
    ----------
    header : IRHeader or tuple of 4
        As for `pack`.
    img : numpy.ndarray, shape (height, width) or (height, width, 3 or 4)
        Grey, BGR or BGRA, as OpenCV orders channels.
    quality : int
        JPEG: quality, 0 to 100.  PNG: compression level, 0 to 9, so that the default means 9, the
        slowest.  Values outside are clamped.
    img_fmt : str
        Suffix of the format with its dot: ``.jpg``, ``.jpeg``, ``.png``, or another that OpenCV
        knows, which is then written with OpenCV's defaults.

    Returns
    -------
    bytes
        The payload of a record.

    Raises
    ------
    ImportError
        If OpenCV is missing.
    cv2.error
        If OpenCV cannot encode the image or does not know the format.

    Examples
    --------
    >>> record = pack_img(IRHeader(0, 1.0, 5, 0), np.zeros((4, 6, 3), np.uint8), img_fmt=".png")
    >>> header, image = unpack_img(record)
    >>> header.id, image.shape
    (5, (4, 6, 3))
    """
    cv2 = _opencv()
    suffix = img_fmt.lower()
    parameters = []
    if suffix in (".jpg", ".jpeg"):
        parameters = [cv2.IMWRITE_JPEG_QUALITY, min(max(quality, 0), 100)]
    elif suffix == ".png":
        parameters = [cv2.IMWRITE_PNG_COMPRESSION, min(max(quality, 0), 9)]
    encoded, content = cv2.imencode(img_fmt, img, parameters)
    if not encoded:
        raise ValueError(f"OpenCV could not encode an image of shape {img.shape} as {img_fmt}")
    return pack(header, content.tobytes())


def unpack_img(s, iscolor=-1, **limits):
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
        None for no limit; ``max_pixels=None`` also for images whose headers Pillow cannot read,
        such as Radiance HDR.

    Returns
    -------
    header : IRHeader
        As from `unpack`.
    img : numpy.ndarray or None
        Shape (height, width) or (height, width, channels) in OpenCV's order (BGR).  **None if the
        content is no image that OpenCV can decode**, is empty, or has no header that can be read:
        this is what scripts written for MXNet test for.

    Raises
    ------
    ImportError
        If OpenCV is missing.
    RecordHeaderError
        As from `unpack`.
    ImageDecodeError
        If the image exceeds a limit.

    Examples
    --------
    >>> print(unpack_img(pack(IRHeader(0, 1.0, 5, 0), b"no image"))[1])
    None
    """
    cv2 = _opencv()
    limits = complete_limits(limits)
    header, content = unpack(s)
    data = np.frombuffer(content, np.uint8)
    if not data.size:
        return header, None
    try:
        check_chunks(data)
        size = (0, 0) if limits["max_pixels"] == NO_LIMIT else image_size(data)
    except ImageDecodeError:
        return header, None
    check_limits(data, size, limits)
    return header, cv2.imdecode(data, iscolor)


def _opencv():
    return need("cv2", "pack_img and unpack_img")
