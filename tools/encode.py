"""One image file -> the bytes of one image record.

Decoding, resampling and encoding are OpenCV's, in the order of MXNet's tool: centre crop, resize,
encode; raw images are written by `recordio.formats.pnm`, and where
`recordio.formats.jpeg.resize` gives the same pixels in less time, it does the first two.
"""

from __future__ import annotations

import struct

import numpy as np

from recordio import ImageDecodeError, IRHeader, LabelError, RecordTooLargeError
from recordio import pack as pack_record
from recordio.boxes import check_listed
from recordio.containers.labels import raw_values_in
from recordio.extras import command
from recordio.formats import by_opencv, pnm
from recordio.formats.decode import decode_as_opencv
from recordio.formats.encode import encode_as_opencv
from recordio.formats.image_header import ImageHeader, check_pixels, read_header
from recordio.formats.jpeg.resize import decode_resized
from recordio.formats.table import format_of, kind_of
from recordio.kernels.resample import resize
from recordio.list_files import ListEntry

from .im2rec_options import EncodeOptions
from .images import JPEG_QUALITY, check_decodes, check_jpeg, check_stored, decode_upright
from .npy import decode_npy
from .optimize import Tally, optimize_image
from .payloads import SHOWN_WHOLE

__all__ = [
    "EncodeOptions",
    "crop_square",
    "encode_image",
    "encode_record",
    "loses_bits",
    "resized_size",
]

AUTOMATIC_INTERPOLATION = 9
ONE_PASS_METHODS = (1, 3)

JPEG_START = b"\xff\xd8\xff"

RECORD_LIMIT = 2**29
LARGEST_JPEG_SIDE = 65500
LARGEST_IMAGE = 2**30  # pixels; what OpenCV's readers accept
#: Values that no encoding holds.
UNFIT = {"i": "values with a sign", "f": "floating point values"}


def encode_record(
    entry: ListEntry, data: bytes, options: EncodeOptions, tally: Tally | None = None
) -> bytes:
    """Make the record of an image that was read."""
    if not entry.labels:
        raise LabelError("the list entry has no label")
    label: float | tuple[float, ...] = entry.labels[0]
    if options.pack_label and len(entry.labels) > 1:
        label = entry.labels
        check_listed(label)
    image = encode_image(data, options)
    if options.optimize:
        image = optimize_image(image, tally or Tally())
    try:
        record = pack_record(IRHeader(0, label, entry.id, 0), image)
    except (struct.error, OverflowError) as error:
        raise LabelError(f"the id or a label does not fit an image header: {error}") from None
    if len(record) >= RECORD_LIMIT:
        raise RecordTooLargeError(f"{len(record)} bytes; a record must have less than 2**29")
    return record


def encode_image(data: bytes, options: EncodeOptions) -> bytes:
    """Turn the bytes of an image file into the bytes to store: `data` itself where possible."""
    kind = kind_of(data)
    if kind == "npy":
        return _checked_array(data, options)
    if options.pass_through and options.check == "none":
        return data
    if not data:
        raise ImageDecodeError("the file is empty")
    try:
        header = read_header(data)
    except ImageDecodeError as error:
        hint = raw_values_in(data) if kind == "other" else ""
        raise ImageDecodeError(error.reason + hint) from None
    untouched = options.pass_through or _needs_no_change(data, header, options)
    if options.check == "decode":
        (check_decodes if untouched else check_jpeg)(data, options.max_pixels)
    elif options.check == "header" and (untouched or kind in SHOWN_WHOLE):
        check_stored(data, options.max_pixels)  # others are decoded as a whole
    if untouched:
        return data
    image = _decode_resized_jpeg(data, options, header)
    if image is None:
        image = _decode(data, header, options)
        if options.center_crop:
            image = crop_square(image)
        if options.resize:
            image = _resize_short_side(image, options)
    return _encode(image, options)


def _checked_array(data: bytes, options: EncodeOptions) -> bytes:
    """Return an array as it is, where that is wanted."""
    if not options.pass_through:
        raise ImageDecodeError("it is a .npy array: only images can be changed")
    if options.check != "none":
        decode_npy(data)
    return data


def _needs_no_change(data: bytes, header: ImageHeader, options: EncodeOptions) -> bool:
    """Return True if decoding and re-encoding would only lose quality or time."""
    if options.check == "none" or options.quality is not None:
        return False
    if not header.plain or header.orientation != 1:
        return False
    row = format_of(data)
    if ("raw" if row.kind in ("pgm", "ppm") else row.suffixes[0]) != options.encoding:
        return False
    if header.channels not in {1: (3,), 0: (1,), -1: (1, 3, 4)}[options.color]:
        return False
    if row.kind == "jpeg" and header.channels == 4:  # CMYK is decoded to BGR
        return False
    if header.bits not in ((8, 16) if row.kind == "png" and options.color < 0 else (8,)):
        return False
    if options.center_crop and header.width != header.height:
        return False
    return options.resize in (0, min(header.width, header.height))


def loses_bits(data: bytes, options: EncodeOptions) -> bool:
    """Return True for an image of which the upper 8 bits are stored, and more are in the file."""
    if options.pass_through or options.color < 0:
        return False
    return (read_header(data).bits or 8) > 8


def _decode(data: bytes, header: ImageHeader, options: EncodeOptions) -> np.ndarray:
    """Decode an image upright as `color` says."""
    if header.numbers != "u":
        raise ImageDecodeError(
            f"it holds {UNFIT.get(header.numbers, 'values of an unknown kind')}, which no "
            "--encoding keeps; --pass-through stores the file unchanged"
        )
    if options.color < 0:
        return decode_upright(data, options.max_pixels)
    limits = {"max_pixels": options.max_pixels}
    return decode_as_opencv(data, options.color, limits, "--max-pixels", options.background)


def _decode_resized_jpeg(
    data: bytes, options: EncodeOptions, header: ImageHeader
) -> np.ndarray | None:
    """Decode, crop and resize in one step with the same result; None where that is impossible."""
    if not options.resize or options.color < 0 or not data.startswith(JPEG_START):
        return None
    method = options.inter_method
    if method == AUTOMATIC_INTERPOLATION:
        method = 3 if options.resize < min(header.width, header.height) else method
    if method not in ONE_PASS_METHODS:
        return None
    check_pixels(header.size, options.max_pixels, "--max-pixels")
    return decode_resized(
        data,
        options.resize,
        method,
        3 if options.color else 1,
        square=options.center_crop,
        largest_side=LARGEST_JPEG_SIDE,
    )


def crop_square(image: np.ndarray) -> np.ndarray:
    """Cut out the square in the centre."""
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def resized_size(image: np.ndarray, options: EncodeOptions) -> tuple[int, int]:
    """Return width and height of an image whose short side is scaled as the options say."""
    height, width = image.shape[:2]
    short = options.resize
    short_width = height > width
    size = (short, height * short // width) if short_width else (width * short // height, short)
    largest = max(size)
    if options.encoding == ".jpg" and largest > LARGEST_JPEG_SIDE:
        raise ImageDecodeError(
            f"resized to {size[0]}x{size[1]} pixels it is larger than a JPEG can be "
            f"({LARGEST_JPEG_SIDE} a side); use --encoding .png or leave it out of the list"
        )
    if size[0] * size[1] > LARGEST_IMAGE:
        raise ImageDecodeError(f"resized to {size[0]}x{size[1]} it has more than 2**30 pixels")
    return size


def _resize_short_side(image: np.ndarray, options: EncodeOptions) -> np.ndarray:
    size, method = resized_size(image, options), options.inter_method
    if method == AUTOMATIC_INTERPOLATION:
        scale = options.resize - min(image.shape[:2])
        method = 2 if scale > 0 else 3 if scale < 0 else 1
    return _resized(image, size, method)


def _resized(image: np.ndarray, size: tuple[int, int], method: int) -> np.ndarray:
    """Resize by OpenCV's methods 0 to 4, whose numbers are those of the resampler."""
    if by_opencv.available():
        import cv2

        return cv2.resize(image, size, interpolation=method)
    if image.dtype != np.uint8:
        raise ImageDecodeError(
            f"{image.dtype} samples are resized by OpenCV only: {command('cv2')}, or use --color 1"
        )
    pixels = np.ascontiguousarray(image if image.ndim == 3 else image[..., None])
    output = resize(pixels, size, method)
    return output if image.ndim == 3 else output[..., 0]


def _encode(image: np.ndarray, options: EncodeOptions) -> bytes:
    if options.encoding == "raw":
        return _encode_raw(image)
    quality = JPEG_QUALITY if options.quality is None else options.quality
    if options.encoding == ".jpg":
        # OpenCV would clip deeper samples to 255 instead of scaling them.
        if image.dtype != np.uint8:
            raise ImageDecodeError(
                f"{image.dtype} samples do not fit into JPEG; use --color 1 or --encoding .png"
            )
    elif image.dtype not in (np.uint8, np.uint16):
        raise ImageDecodeError(
            f"{image.dtype} samples do not fit into PNG; --color 1 stores their upper 8 bits"
        )
    try:
        return encode_as_opencv(image, options.encoding, quality)
    except by_opencv.errors() as error:
        raise ImageDecodeError(f"it cannot be encoded: {error}") from None


def _encode_raw(image: np.ndarray) -> bytes:
    if image.dtype != np.uint8:
        raise ImageDecodeError(
            f"{image.dtype} samples do not fit into raw images; use --color 1 or --encoding .png"
        )
    height, width = image.shape[:2]
    if image.nbytes >= RECORD_LIMIT:
        raise RecordTooLargeError(
            f"{width}x{height} pixels are {image.nbytes} bytes; a record must have less than 2**29"
        )
    if image.ndim == 2:
        return pnm.encode(np.ascontiguousarray(image[..., None]))
    if image.shape[2] != 3:
        raise ImageDecodeError(
            f"raw images have 1 or 3 channels, not {image.shape[2]}; use --color 1 or "
            "--encoding .png"
        )
    return pnm.encode(np.ascontiguousarray(image[..., ::-1]))
