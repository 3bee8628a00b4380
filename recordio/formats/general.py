"""Decode one encoded image, of any format, into an array.

libjpeg-turbo decodes the ordinary JPEG, `png` the sound PNG, `pnm` raw pixels, OpenCV everything
else; `by_pillow` has what it was built without.  The image stage asks the sources
of `table`, the last of which comes here.
"""

from __future__ import annotations

import numpy as np

from recordio.errors import ImageDecodeError
from recordio.extras import command
from recordio.formats import by_pillow, pnm
from recordio.formats.image_size import check_for_opencv, complete_limits, image_size
from recordio.formats.jpeg import jpeg
from recordio.formats.kinds import kind_of
from recordio.formats.orientation import is_turned
from recordio.formats.png import png
from recordio.kernels.orient import orient

__all__ = ["decode", "describe", "upright_size"]


#: Kinds of `recordio.formats.kinds` that never have more than 8 bits.
EIGHT_BITS = frozenset(["jpeg", "webp", "gif", "bmp"])
DTYPES = ("uint8", "float32")


def decode(data, channels=3, *, dtype="uint8", **limits):
    """Decode an image, upright, to 8 bits per channel or to the values that are stored.

    Parameters
    ----------
    data : bytes-like
        The file: JPEG, PNG, PNM, BMP, WebP, AVIF, TIFF, GIF and whatever else OpenCV was built
        with; JPEG XL with the package ``pillow-jxl-plugin``.  Of several frames the first counts.
    channels : {3, 1, 4}
        3 for RGB, 1 for grey, both converted from whatever is stored and turned as the EXIF
        orientation says.  4 for RGBA: the image must have four channels, and is taken as stored.
    dtype : {"uint8", "float32"}
        ``"uint8"``: of 16-bit images the upper 8 bits.  ``"float32"``: the values themselves, up to
        255 or 65535, or whatever a TIFF of floating point or signed numbers holds, for 1 or 3
        channels; nothing is scaled and no bit is lost.
    **limits : int
        Images with more pixels than `max_pixels`, in a frame or tile of theirs too, are refused
        before anything is decoded, and JPEG images with more scans than `max_scans`, or more than
        `max_scan_pixels` in all of them.

    Returns
    -------
    numpy.ndarray
        Of `dtype` and shape (height, width, channels).

    Raises
    ------
    ImageDecodeError
        If the bytes are not an image, are damaged or truncated, exceed a limit, do not have the
        four channels that were asked for, or hold numbers that float32 cannot.

    Notes
    -----
    MXNet decodes the same pixels, but fills what is missing of a truncated JPEG with grey.

    Examples
    --------
    >>> import cv2
    >>> red = np.full((2, 3, 3), (0, 0, 255), "uint8")
    >>> decode(cv2.imencode(".png", red)[1].tobytes())[0, 0].tolist()
    [255, 0, 0]
    >>> depths = cv2.imencode(".png", np.full((2, 3), 1001, "uint16"))[1].tobytes()
    >>> decode(depths, 1)[0, 0, 0], decode(depths, 1, dtype="float32")[0, 0, 0]
    (np.uint8(3), np.float32(1001.0))
    >>> decode(b"no image")
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: not an image of a known format
    """
    if channels not in (1, 3, 4):
        raise ValueError(f"channels must be 1, 3 or 4, not {channels!r}")
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be 'uint8' or 'float32', not {dtype!r}")
    if dtype == "float32" and channels == 4:
        raise ValueError("four channels have 8 bits: drop dtype, or ask for 1 or 3 channels")
    data = memoryview(data)
    limits = complete_limits(limits)
    max_pixels = limits["max_pixels"]
    if dtype == "float32":
        if kind_of(data) in EIGHT_BITS:
            return decode(data, channels, **limits).astype(np.float32)
        return _decode_values(data, channels, limits)
    if data[:3] == b"\xff\xd8\xff":
        if channels == 4:
            raise ImageDecodeError("a JPEG image has no alpha channel; ask for 3 channels")
        if jpeg.available():
            header = jpeg.header(data)
            if header.supported:
                pixels = jpeg.decode(data, channels, **limits)
                return pixels if header.orientation == 1 else orient(pixels, header.orientation)
        _check_jpeg_end(bytes(data))
    elif data[:4] == b"\x89PNG":
        pixels = png.decode(data, channels, max_pixels=max_pixels)
        if pixels is not None:
            return pixels
    elif data[:1] == b"P" and channels != 4:
        pixels = pnm.decode(data, channels, max_pixels=max_pixels)
        if pixels is not None:
            return pixels
    kind = kind_of(data)
    if kind in by_pillow.FORMATS and by_pillow.reader_of(kind) != "OpenCV":
        return by_pillow.decode(data, kind, channels, limits)
    return _decode_with_opencv(data, channels, limits)


def upright_size(data):
    """Width and height of an image as it is decoded, without decoding it.

    Parameters
    ----------
    data : bytes-like
        The file.

    Returns
    -------
    tuple of int
        ``(width, height)`` in pixels, exchanged where `decode` turns the image by a quarter.

    Raises
    ------
    ImageDecodeError
        If the format is unknown or its header is damaged.

    Notes
    -----
    Which orientations of WebP and AVIF are heeded depends on who decodes them: `by_pillow` tried.

    Examples
    --------
    >>> import cv2
    >>> upright_size(cv2.imencode(".jpg", np.zeros((2, 3, 3), "uint8"))[1].tobytes())
    (3, 2)
    """
    width, height = image_size(data)
    kind = kind_of(data)
    heeded = kind not in by_pillow.FORMATS or by_pillow.turns(kind)
    return (height, width) if heeded and is_turned(data) else (width, height)


def _decode_values(data, channels, limits):
    """Decode to float32, with every bit."""
    import cv2

    kind = kind_of(data)
    if kind in by_pillow.FORMATS and by_pillow.reader_of(kind) != "OpenCV":
        raise ImageDecodeError(
            f"{by_pillow.FORMATS[kind].name} has 8 bits here: ask for uint8, or store PNG or TIFF"
        )
    pixels = png.decode(data, channels, deep=True, max_pixels=limits["max_pixels"])
    if pixels is None:
        flag = cv2.IMREAD_GRAYSCALE if channels == 1 else cv2.IMREAD_COLOR
        pixels = _imdecode(data, flag | cv2.IMREAD_ANYDEPTH, limits)
        if channels == 3:
            pixels = pixels[:, :, ::-1]
    values = np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], channels), np.float32)
    if not np.can_cast(pixels.dtype, np.float32) and not np.array_equal(
        values, pixels.reshape(values.shape), equal_nan=True
    ):
        raise ImageDecodeError(f"the image holds {pixels.dtype} values that float32 cannot")
    return values


def describe():
    """Say which decoder decodes what.

    Returns
    -------
    str

    Examples
    --------
    >>> "OpenCV" in describe()
    True
    """
    decoders, missing = [], []
    if jpeg.available():
        entropy = jpeg.entropy_decoder()
        decoders.append(f"{jpeg.library()} (region and scale, entropy decoder: {entropy}) for JPEG")
    else:
        missing.append("for faster JPEG those of libjpeg-turbo (apt install libjpeg62-turbo-dev)")
    if png.decoder() == "own":
        decoders.append(f"{png.library()} (region) for PNG")
    elif png.decoder() == "none":
        missing.append("for faster PNG those of libdeflate (apt install libdeflate-dev)")
    rest = "everything else" if decoders else "everything"
    try:
        import cv2

        decoders.append(f"OpenCV {cv2.__version__} for {rest}")
    except ModuleNotFoundError:
        decoders.append(f"OpenCV, which is not installed ({command('cv2')}), for {rest}")
    text = ", ".join(decoders)
    if missing:
        text += f"; install a wheel, or headers and build again: {', '.join(missing)}"
    return text


def _imdecode(data, flags, limits):
    """What OpenCV makes of it, after a look at what it would cost."""
    import cv2

    check_for_opencv(data, limits)
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError(error.err) from None
        raise ImageDecodeError(f"OpenCV cannot decode the image ({error.err})") from error
    if pixels is None:
        raise ImageDecodeError("OpenCV cannot decode the image: damaged, truncated or unsupported")
    return pixels


def _decode_with_opencv(data, channels, limits):
    """Decode with OpenCV to 8 bits."""
    import cv2

    flags = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}[channels]
    pixels = _imdecode(data, flags, limits)
    if channels == 1:
        return pixels.reshape(pixels.shape[0], pixels.shape[1], 1)
    if channels == 3:
        return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
    if pixels.ndim != 3 or pixels.shape[2] != 4:
        found = 1 if pixels.ndim == 2 else pixels.shape[2]
        raise ImageDecodeError(f"the image has {found} channels, not the 4 that were asked for")
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        raise ImageDecodeError(f"the image has {pixels.dtype} channels; store it with 8 bits")
    return cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGBA)


def _check_jpeg_end(data):
    """Refuse what OpenCV would fill up with grey."""
    position = 2
    while position + 4 <= len(data) and data[position] == 0xFF and data[position + 1] != 0xDA:
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
    # Coded data contains no marker by chance; a thumbnail in a segment before it may.
    if data.find(b"\xff\xd9", position) < 0:
        raise ImageDecodeError("the JPEG image is truncated; pack it again from its source")
