"""Encoded images as arrays, for users: `decode_image`, `decode_many` and `image_info`.

JPEG, PNG, WebP and raw images are decoded without the GIL, by the sources that the image stage
uses, and all other formats by Pillow, or by OpenCV where Pillow does not read them.  Nothing here
encodes an image, and nothing looks at records.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from recordio.errors import ImageDecodeError
from recordio.formats.general import as_type, decode_other
from recordio.formats.image_decoder import decode_pixels
from recordio.formats.image_header import (
    DEFAULT_LIMITS,
    check_limits,
    complete_limits,
    read_header,
)
from recordio.formats.png.deep import STORED
from recordio.formats.table import format_of
from recordio.keywords.checks import colour
from recordio.ordered import default_threads, each_number

#: Memory of the caller, which is returned.
Given = TypeVar("Given")

DTYPES = ("uint8", "uint16", "float32")
CHANNELS = (1, 3, 4)
LAYOUTS = ("HWC", "CHW")
#: Fractions of the size, and how many pixels become one along an axis.
SCALES = {1: 1, 1 / 2: 2, 1 / 4: 4, 1 / 8: 8}
#: Modes of ``cv2.imdecode``, which may be added up.
UNCHANGED, GRAYSCALE, COLOR, ANYDEPTH, IGNORE_ORIENTATION = -1, 0, 1, 2, 128
#: Grey, at a fraction of the size.
REDUCED_GRAYSCALE = {2: 16, 4: 32, 8: 64}
#: The resampler counts pixels in numbers of so many bits.
MOST_PIXELS = 1 << 28


@overload
def decode_image(
    data: Any,
    *,
    channels: int = 3,
    dtype: Any = "uint8",
    region: tuple[int, int, int, int] | None = None,
    scale: float = 1,
    size: tuple[int, int] | None = None,
    orient: bool = True,
    layout: str = "HWC",
    out: None = None,
    strict: bool = False,
    background: Any = None,
    **limits: int | None,
) -> np.ndarray[Any, Any]: ...
@overload
def decode_image(
    data: Any,
    *,
    channels: int = 3,
    dtype: Any = "uint8",
    region: tuple[int, int, int, int] | None = None,
    scale: float = 1,
    size: tuple[int, int] | None = None,
    orient: bool = True,
    layout: str = "HWC",
    out: Given,
    strict: bool = False,
    background: Any = None,
    **limits: int | None,
) -> Given: ...
def decode_image(
    data: Any,
    *,
    channels: int = 3,
    dtype: Any = "uint8",
    region: tuple[int, int, int, int] | None = None,
    scale: float = 1,
    size: tuple[int, int] | None = None,
    orient: bool = True,
    layout: str = "HWC",
    out: Any = None,
    strict: bool = False,
    background: Any = None,
    **limits: int | None,
) -> Any:
    r"""Decode an image of any format into an array.

    Parameters
    ----------
    data : bytes-like
        The content of an image file: JPEG, PNG, WebP, AVIF, GIF, BMP, TIFF, PNM, JPEG 2000 and
        others that Pillow decodes, or OpenCV if Pillow does not. Only the first of several frames
        is decoded; of an animated PNG file it is the still image.
    channels : {3, 1, 4}
        3 for RGB, 1 for grey, both converted from any stored colours; 4 for RGBA, which the image
        must have and which is never turned upright.
    dtype : {"uint8", "uint16", "float32"}
        ``"uint8"`` keeps the upper 8 bits of deeper images. The others hold the stored values, 0 to
        255 or 0 to 65535 for 8 or 16 bits: nothing is scaled and no bit is lost. Negative values
        and floating point need ``"float32"``.
    region : (x, y, width, height), optional
        Decode this rectangle only, in pixels of the upright image at full size.
    scale : {1, 1/2, 1/4, 1/8}
        Decode at a fraction of the size, rounded up: JPEG images by a smaller transform, all others
        by averages. A region is widened to whole pixels of that size. Only for ``"uint8"``.
    size : (width, height), optional
        Resize the image, or its region, to this size, 1 to 2**28 - 1 pixels a side: by averages
        over areas where it shrinks, bilinear where it grows. JPEG images are decoded at the
        smallest fraction that is not below it. Only for ``"uint8"``, and not with `scale`.
    orient : bool
        Turn the image upright as its EXIF orientation says. TIFF and JPEG XL images, to whose
        format an orientation belongs, are always turned.
    layout : {"HWC", "CHW"}
        The order of the axes: rows, columns, channels; or channels, rows, columns.
    out : numpy.ndarray or tensor, optional
        Memory to decode into, of the shape and type of the result: an array, or an object that
        gives its memory through the buffer protocol or DLPack on the CPU. Rows may be apart; the
        pixels of a row must be adjacent.
    strict : bool
        Refuse a JPEG image about which the decoder warns: where its data is damaged, pixels are
        invented.
    background : int or (int, int, int), optional
        Colour, 0 to 255 for R, G and B or one number for all, that a transparent image is laid
        over, as by Pillow's ``Image.alpha_composite``. Without it the alpha channel is left out.
        Only for ``"uint8"`` and for 1 or 3 channels.
    **limits : int or None
        Images with more pixels than `max_pixels` are refused before anything is decoded, and JPEG
        images with more scans than `max_scans`, or more than `max_scan_pixels` in all of them.
        None for no limit.

    Returns
    -------
    numpy.ndarray, (height, width, channels) or (channels, height, width)
        Of type `dtype`; ``torch.from_dlpack`` makes a tensor of it without a copy. `out` if it is
        given.

    Raises
    ------
    ImageDecodeError
        If the data is no image, is damaged or truncated, lacks the channels, has values that
        `dtype` cannot hold, or exceeds a limit.
    ValueError
        If a parameter is out of range, the region is not in the image, or `out` has another shape
        or type.
    TypeError
        If `data` is not bytes-like, `out` has no memory on the CPU, or a limit does not exist.

    See Also
    --------
    decode_many : Many images, by several threads.
    image_info : Facts from the header.

    Notes
    -----
    JPEG, PNG, WebP and raw images are decoded without the GIL, so Python threads decode in
    parallel.
    Only the blocks of a JPEG image that a region needs are transformed, and rows below the region
    are not read.

    Examples
    --------
    >>> import numpy as np
    >>> from recordio import decode_image
    >>> data = b"P6\n60 40\n255\n" + bytes((200, 10, 10)) * (60 * 40)
    >>> decode_image(data)[0, 0].tolist()
    [200, 10, 10]
    >>> decode_image(data, region=(50, 0, 10, 40), layout="CHW").shape
    (3, 40, 10)
    >>> decode_image(data, size=(30, 20), out=np.empty((20, 30, 3), np.uint8)).mean()
    np.float64(73.33333333333333)
    """
    if channels not in CHANNELS:
        raise ValueError(f"channels must be 1, 3 or 4, not {channels!r}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be 'HWC' or 'CHW', not {layout!r}")
    if scale not in SCALES:
        raise ValueError(f"scale must be 1, 1/2, 1/4 or 1/8, not {scale!r}")
    if size is not None:
        if scale != 1:
            raise ValueError("scale and size both say how large the result is: leave one out")
        size = _pixels("size", size, "(width, height)", 2)
        if min(size) < 1 or max(size) >= MOST_PIXELS:
            raise ValueError(f"size must be 1 to {MOST_PIXELS - 1} pixels a side, not {size}")
    if region is not None:
        region = _pixels("region", region, "(x, y, width, height)", 4)
    over = None if background is None else colour("background", background)
    if over is not None and channels == 4:
        raise ValueError("background: RGBA images keep their alpha channel: drop it, or channels=4")
    checked = complete_limits(limits) if limits else DEFAULT_LIMITS
    if isinstance(data, str):
        raise TypeError("data is a str: pass the bytes of an image file, not its path")
    memory = out if out is None else memory_of(out)
    if dtype != "uint8" and np.dtype(dtype) != np.uint8:
        if scale != 1 or size is not None or over is not None:
            raise ValueError(
                "scale, size and background are for dtype='uint8': other types hold the stored "
                "values"
            )
        pixels = _decode_values(data, channels, _type_of(dtype), region, orient, strict, checked)
        image = _laid_out(pixels, layout, memory)
    else:
        planar = layout == "CHW"
        image = decode_pixels(
            data,
            channels,
            orient,
            checked,
            region,
            SCALES[scale],
            size,
            planar,
            strict,
            memory,
            over,
        )
    return image if out is None else out


@overload
def decode_many(
    images: Any,
    *,
    threads: int | None = None,
    out: None = None,
    size: None = None,
    **settings: Any,
) -> list[np.ndarray[Any, Any]]: ...
@overload
def decode_many(
    images: Any,
    *,
    threads: int | None = None,
    out: None = None,
    size: tuple[int, int],
    **settings: Any,
) -> np.ndarray[Any, Any]: ...
@overload
def decode_many(
    images: Any,
    *,
    threads: int | None = None,
    out: Given,
    size: tuple[int, int] | None = None,
    **settings: Any,
) -> Given: ...
def decode_many(
    images: Any,
    *,
    threads: int | None = None,
    out: Any = None,
    size: tuple[int, int] | None = None,
    **settings: Any,
) -> Any:
    r"""Decode many images by several threads, without the GIL.

    Parameters
    ----------
    images : iterable of bytes-like
        The contents of image files.
    threads : int, optional
        How many threads decode, including that of the caller; by default one for every processor
        that this process may use. The result is the same with any number.
    out : numpy.ndarray or tensor, optional
        Memory for all images, one after the other along the first axis, each as for
        `decode_image`.
    size : (width, height), optional
        As for `decode_image`. All images then have one size, and the result is one array.
    **settings
        The other keywords of `decode_image`.

    Returns
    -------
    list of numpy.ndarray, or one array
        `out` if it is given; with `size` one array, (images, height, width, channels) or (images,
        channels, height, width); otherwise a list of the arrays of `decode_image`.

    Raises
    ------
    ImageDecodeError
        For the first image that cannot be decoded, with any number of threads; ``error.record`` is
        its position.
    ValueError, TypeError
        If `threads` is below 1, `out` does not have four axes with one entry for each image along
        the first, or as for `decode_image`.

    See Also
    --------
    decode_image : One image, and the keywords.

    Examples
    --------
    >>> import numpy as np
    >>> from recordio import decode_many
    >>> images = [b"P5\n%d 20\n255\n" % n + bytes(20 * n) for n in (10, 30)]
    >>> [image.shape for image in decode_many(images)]
    [(20, 10, 3), (20, 30, 3)]
    >>> decode_many(images, size=(8, 8), layout="CHW").shape
    (2, 3, 8, 8)
    """
    images = list(images)
    if threads is None:
        threads = default_threads()
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a whole number above 0, not {threads!r}")
    target = out if out is None else memory_of(out)
    if target is None and size is not None:
        width, height = _pixels("size", size, "(width, height)", 2)
        channels = settings.get("channels", 3)
        planar = settings.get("layout") == "CHW"
        shape = (channels, height, width) if planar else (height, width, channels)
        target = np.empty((len(images), *shape), settings.get("dtype", "uint8"))
    if target is not None and (target.ndim != 4 or len(target) != len(images)):
        raise ValueError(
            f"out has the shape {target.shape}, and needs four axes, the first of {len(images)}"
        )
    results: list[Any] = [None] * len(images)

    def work(number: int) -> None:
        slot = None if target is None else target[number]
        try:
            results[number] = decode_image(images[number], size=size, out=slot, **settings)
        except ImageDecodeError as error:
            raise error.at(record=number) from error.__cause__

    each_number(len(images), work, threads)
    if target is None:
        return results
    return target if out is None else out


class ImageInfo(NamedTuple):
    r"""Facts from the header of an image; None for those that it lacks.

    Attributes
    ----------
    kind : str
        Format: ``"jpeg"``, ``"png"``, ``"webp"``, ``"avif"``, ``"gif"``, ``"bmp"``,
        ``"tiff"``, ``"ppm"``, ``"pgm"``, ``"pfm"``, ``"jxl"``, ``"jpeg2000"``, ``"hdr"``,
        ``"exr"``, or ``"other"``.
    width, height : int
        Pixels of the upright image, as `decode_image` gives it.
    orientation : int
        How the stored pixels are turned, 1 to 8 as in EXIF; 1 if the file has none.
    bits : int or None
        Bits of a stored value, usually 8 or 16; 8 for the colours of a palette.
    channels : int or None
        Stored channels: 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha, or CMYK.
        Palettes count as the colours that they hold.
    progressive : bool
        True for a progressive JPEG image or an interlaced PNG image.

    Examples
    --------
    >>> from recordio import image_info
    >>> image_info(b"P5\n6 4\n255\n" + bytes(24)).bits
    8
    """

    kind: str
    width: int
    height: int
    orientation: int
    bits: int | None
    channels: int | None
    progressive: bool


def image_info(data: Any) -> ImageInfo:
    r"""Read the header of an image; nothing is decoded.

    Parameters
    ----------
    data : bytes-like
        The content of an image file, or its beginning with the whole header.

    Returns
    -------
    ImageInfo

    Raises
    ------
    ImageDecodeError
        If the data is no image, or its header is damaged.
    TypeError
        If `data` is not bytes-like.

    Examples
    --------
    >>> from recordio import image_info
    >>> image_info(b"P6\n6 4\n255\n" + bytes(72))[:4]
    ('ppm', 6, 4, 1)
    """
    if isinstance(data, str):
        raise TypeError("data is a str: pass the bytes of an image file, not its path")
    view = memoryview(data).cast("B")
    header = read_header(view)
    return ImageInfo(
        format_of(view).kind,
        *header.size,
        header.orientation,
        header.bits,
        header.channels,
        header.progressive,
    )


def memory_of(out: Any, name: str = "out") -> np.ndarray:
    """Return an array over the memory of `out`, which errors call by the name given."""
    if isinstance(out, np.ndarray):
        return out
    try:
        return np.from_dlpack(out) if hasattr(out, "__dlpack__") else np.asarray(memoryview(out))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be an array or a tensor in the memory of the CPU, not "
            f"{type(out).__name__}: {error}"
        ) from None


def _pixels(name: str, value: Any, form: str, count: int) -> Any:
    """Return whole numbers; a ValueError says what they have to be."""
    try:
        numbers = tuple(operator.index(number) for number in value)
    except TypeError:
        numbers = ()
    if len(numbers) != count:
        raise ValueError(f"{name} must be {form} in whole pixels, not {value!r}")
    return numbers


def _type_of(dtype: Any) -> np.dtype:
    data_type = np.dtype(dtype)
    if data_type.name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    return data_type


def _decode_values(
    data: Any,
    channels: int,
    dtype: np.dtype,
    region: Any,
    orient: bool,
    strict: bool,
    limits: dict[str, int],
) -> np.ndarray:
    """Decode to the stored values."""
    view = memoryview(data)
    view = view.cast("B") if view.nbytes else memoryview(b"")
    header = read_header(view)
    if header.numbers == "u" and header.bits is not None and header.bits <= 8:
        pixels = decode_pixels(view, channels, orient, limits, region, 1, None, False, strict, None)
        return pixels.astype(dtype)
    image = decode_other(view, channels, deep=True, upright=orient, ends_early=False, **limits)
    if region is not None:
        x, y, width, height = region
        if (
            min(x, y) < 0
            or min(width, height) < 1
            or (x + width > image.shape[1] or y + height > image.shape[0])
        ):
            raise ValueError(
                f"the region {region} lies outside the image of {image.shape[1]} x "
                f"{image.shape[0]} pixels: it is (x, y, width, height)"
            )
        image = image[y : y + height, x : x + width]
    values = as_type(image, dtype)
    return values.copy() if values is image and region is not None else values


def _laid_out(pixels: np.ndarray, layout: str, out: np.ndarray | None) -> np.ndarray:
    """Return pixels with their axes in the order that was asked for, in `out` if given."""
    if layout == "CHW":
        pixels = pixels.transpose(2, 0, 1)
    if out is None:
        return np.ascontiguousarray(pixels)
    if out.shape != pixels.shape or out.dtype != pixels.dtype:
        raise ValueError(
            f"out has the shape {out.shape} of {out.dtype}, and the image has {pixels.shape} of "
            f"{pixels.dtype}"
        )
    out[...] = pixels
    return out


# ---- As OpenCV's modes have it, for MXNet's functions and for tools


def decode_as_opencv(
    data: Any,
    mode: int,
    limits: Mapping[str, int | None],
    lift: str = "max_pixels",
    background: tuple[int, int, int] | None = None,
) -> np.ndarray:
    """Decode an image as ``cv2.imdecode`` does with a mode: grey, BGR or BGRA, 8 bits or as stored.

    The pixels are those of `decode_image`, which OpenCV need not be installed for.  `lift` is what
    raises the limit on pixels, for the error.  Grey and BGR images are laid over a `background`.
    """
    header = read_header(data)
    all_limits: dict[str, Any] = complete_limits(limits)
    check_limits(data, all_limits, lift, header.size)
    row = format_of(data)
    if mode == UNCHANGED and row.rows is not None and (header.bits or 8) <= 8:
        channels = 3 if row.kind == "jpeg" and header.channels == 4 else header.channels or 3
        pixels = decode_image(data, channels=STORED.get(channels, 3), orient=False, **all_limits)
    elif mode == UNCHANGED:
        all_bits = row.kind != "avif"  # its decoder gives 8 bits of more
        pixels = decode_other(data, 0, deep=all_bits, upright=False, **all_limits)
    else:
        by = next((by for by, bit in REDUCED_GRAYSCALE.items() if mode & bit), 1)
        deep = mode & ANYDEPTH and (header.bits or 8) > 8
        pixels = decode_image(
            data,
            channels=3 if mode & COLOR else 1,
            dtype="uint16" if deep else "uint8",
            scale=1 / by,
            orient=not mode & IGNORE_ORIENTATION,
            background=background,
            **all_limits,
        )
    if pixels.shape[2] == 1:
        return np.ascontiguousarray(pixels[:, :, 0])
    return np.ascontiguousarray(pixels[..., [2, 1, 0, *range(3, pixels.shape[2])]])


def check_whole(data: Any, max_pixels: int = DEFAULT_LIMITS["max_pixels"]) -> None:
    """Refuse an image of which not all pixels are there: one rule for readers and converters.

    Where the structure of the file does not show it, the image is decoded.
    """
    view = memoryview(data).cast("B")
    if not format_of(view).is_whole(view):
        decode_as_opencv(view, UNCHANGED, {"max_pixels": max_pixels})
