"""Arrays as encoded images: `encode_image` for users, and files as OpenCV writes them.

JPEG and PNG images are encoded without the GIL; OpenCV or Pillow write all other formats.  Nothing
here writes a file or a record.
"""

from __future__ import annotations

import importlib
import io
import struct
import zlib
from typing import Any

import numpy as np

from recordio.formats import by_opencv, pnm
from recordio.formats.decode import memory_of
from recordio.formats.jpeg import encoder
from recordio.formats.table import FORMATS

ROWS = {row.kind: row for row in FORMATS}
RAW = {"pgm": 1, "ppm": 3}
JPEG_QUALITY, PNG_LEVEL = 95, 6
#: Colour types of PNG by the number of channels.
PNG_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}


def encode_image(
    array: Any,
    kind: str = "jpeg",
    *,
    quality: int | None = None,
    subsampling: str = "4:2:0",
    progressive: bool = False,
    optimize: bool = False,
) -> bytes:
    """Encode an array as an image file in memory.

    Parameters
    ----------
    array : array_like, (height, width) or (height, width, channels)
        Grey, RGB or RGBA of uint8, or of uint16 for PNG; an array, or a tensor on the CPU.
        JPEG images have 1 or 3 channels, PNG images 1 to 4.
    kind : str
        ``"jpeg"``, ``"png"``, ``"ppm"`` or ``"pgm"``; or ``"webp"``, ``"bmp"``, ``"tiff"`` and
        other kinds of `image_info` that OpenCV or Pillow writes here.
    quality : int, optional
        JPEG: 0 to 100, 95 by default. PNG: the compression level, 0 to 9, 6 by default. WebP: 1 to
        100.
    subsampling : {"4:2:0", "4:4:4", "4:2:2", "4:4:0", "4:1:1"}
        Sampling of the colours of a JPEG image.
    progressive : bool
        Write a progressive JPEG image.
    optimize : bool
        Give a JPEG image Huffman tables of its own.

    Returns
    -------
    bytes
        The content of the file. A JPEG image has the bytes that ``cv2.imencode`` writes; a PNG
        image has the same pixels, not the same bytes.

    Raises
    ------
    ValueError
        If the array or an option does not suit the kind, or the kind cannot be written here.
    TypeError
        If `array` is no array and has no memory on the CPU.

    See Also
    --------
    decode_image : The reverse.

    Examples
    --------
    >>> import numpy as np
    >>> from recordio import decode_image, encode_image
    >>> image = np.full((4, 6, 3), (200, 10, 10), np.uint8)
    >>> np.array_equal(decode_image(encode_image(image, "png")), image)
    True
    >>> encode_image(image, quality=90)[-2:] == bytes((0xFF, 0xD9))
    True
    """
    has_memory = not isinstance(array, (np.ndarray, list))
    pixels = memory_of(array, "array") if has_memory else np.asarray(array)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3 or not pixels.size:
        raise ValueError(f"an image has the shape (height, width, channels), not {pixels.shape}")
    if pixels.dtype != np.uint8 and not (pixels.dtype == np.uint16 and kind == "png"):
        raise ValueError(f"{kind} images are encoded from uint8, not {pixels.dtype}")
    if kind not in ROWS:
        raise ValueError(f"kind must be one of {', '.join(ROWS)}, not {kind!r}")
    if kind != "jpeg" and (subsampling != "4:2:0" or progressive or optimize):
        raise ValueError("subsampling, progressive and optimize are for JPEG images")
    pixels = np.ascontiguousarray(pixels)
    if kind == "jpeg":
        return _jpeg(pixels, quality, subsampling, progressive, optimize)
    if kind == "png":
        level = PNG_LEVEL if quality is None else quality
        if level not in range(10):
            raise ValueError(f"the quality of PNG is a compression level, 0 to 9, not {quality}")
        return encode_png(pixels, level)
    if kind in RAW:
        if quality is not None or pixels.shape[2] != RAW[kind]:
            raise ValueError(f"{kind} images have {RAW[kind]} channels, and no quality")
        return pnm.encode(pixels)
    if by_opencv.available():
        ordered = pixels if pixels.shape[2] < 3 else pixels[..., [2, 1, 0, 3][: pixels.shape[2]]]
        try:
            return by_opencv.encode(ordered, ROWS[kind].suffixes[0], quality)
        except by_opencv.errors() as error:
            raise ValueError(f"OpenCV cannot encode {kind}: {error}") from None
    return _by_pillow(pixels, kind, quality)


def encode_as_opencv(pixels: np.ndarray, suffix: str, quality: int | None = None) -> bytes:
    """Encode grey, BGR or BGRA pixels as ``cv2.imencode`` does, as the format of a suffix.

    A quality outside its range is clamped.  JPEG images have the same bytes with and without
    OpenCV, PNG images the same pixels.  Errors are OpenCV's, or a ValueError.
    """
    kind = suffix.lower()
    channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    if (
        kind in ROWS["jpeg"].suffixes
        and pixels.dtype == np.uint8
        and channels in (1, 3)
        and encoder.available()
        and 0 < max(pixels.shape[:2]) <= encoder.LONGEST_SIDE
        and pixels.size
    ):
        image = np.ascontiguousarray(pixels[:, :, None] if pixels.ndim == 2 else pixels)
        best = JPEG_QUALITY if quality is None else min(max(quality, 0), 100)
        return encoder.encode(image, best, bgr=True)
    if by_opencv.available():
        return by_opencv.encode(pixels, suffix, quality)
    rows = [row for row in FORMATS if kind in row.suffixes]
    if not rows:
        raise ValueError(f"{suffix} is no format that can be written without OpenCV")
    # .pnm stands for grey files, too.
    target = next((row for row in rows if RAW.get(row.kind) == channels), rows[0])
    if pixels.ndim == 3 and pixels.shape[2] > 2:
        pixels = pixels[..., [2, 1, 0, 3][: pixels.shape[2]]]
    if quality is not None:
        quality = min(max(quality, 0), 9 if target.kind == "png" else 100)
        quality = quality if target.quality else None
    return encode_image(pixels, target.kind, quality=quality)


def _jpeg(
    pixels: np.ndarray, quality: int | None, subsampling: str, progressive: bool, optimize: bool
) -> bytes:
    """Encode a JPEG image, by Pillow where there is no libjpeg-turbo of ours."""
    best = JPEG_QUALITY if quality is None else quality
    try:
        return encoder.encode(
            pixels, best, subsampling=subsampling, progressive=progressive, optimize=optimize
        )
    except RuntimeError:  # nothing is wrong but that there is no libjpeg-turbo
        pass
    if subsampling not in ("4:4:4", "4:2:2", "4:2:0"):
        raise ValueError(f"{subsampling} needs libjpeg-turbo, without which recordio was built")
    return _by_pillow(
        pixels, "jpeg", best, subsampling=subsampling, progressive=progressive, optimize=optimize
    )


def _by_pillow(pixels: np.ndarray, kind: str, quality: int | None, **options: Any) -> bytes:
    """Encode an image by Pillow."""
    from PIL import Image

    row = ROWS[kind]
    if not row.pillow:
        raise ValueError(f"{kind} images are not written here")
    if quality is not None:
        options["quality"] = quality
    file = io.BytesIO()
    try:
        importlib.import_module(row.module)
        Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(
            file, row.pillow, **options
        )
    except (ImportError, KeyError, OSError, TypeError, ValueError) as error:
        raise ValueError(f"Pillow cannot encode {kind}: {error}") from None
    return file.getvalue()


def encode_png(pixels: np.ndarray, level: int) -> bytes:
    """Encode grey, grey and alpha, RGB or RGBA pixels of 8 or 16 bits as PNG.

    Each row gets the filter that leaves the smallest sum of differences, as libpng chooses.
    """
    height, width, channels = pixels.shape
    if channels not in PNG_COLOURS:
        raise ValueError(f"a PNG image has 1 to 4 channels, not {channels}")
    bits = 8 * pixels.itemsize
    rows = np.ascontiguousarray(pixels.astype(f">u{pixels.itemsize}"))
    stored = rows.view(np.uint8).reshape(height, -1)
    left, above, corner = np.zeros((3, *stored.shape), np.uint8)
    step = channels * pixels.itemsize
    left[:, step:], above[1:] = stored[:, :-step], stored[:-1]
    corner[1:, step:] = stored[:-1, :-step]
    wide = (plane.astype(np.int16) for plane in (left, above, corner))
    best, sums = np.zeros((height, 1 + stored.shape[1]), np.uint8), None
    for number, guess in enumerate(_guesses(*wide)):
        filtered = stored - guess.astype(np.uint8)
        size = np.minimum(filtered, 0 - filtered).sum(1, dtype=np.int64)
        better = np.ones(height, bool) if sums is None else size < sums
        sums = size if sums is None else np.minimum(size, sums)
        best[better, 0], best[better, 1:] = number, filtered[better]
    header = struct.pack(">IIBBBBB", width, height, bits, PNG_COLOURS[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(best.data, level)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in (kind + content for kind, content in chunks)
    )


def _guesses(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> Any:
    """Yield the five predictions of the filters of PNG."""
    yield np.zeros_like(left)
    yield left
    yield above
    yield (left + above) >> 1
    to_left, to_above = np.abs(above - corner), np.abs(left - corner)
    to_corner = np.abs(left + above - 2 * corner)
    nearer = np.where(to_above <= to_corner, above, corner)
    yield np.where((to_left <= to_above) & (to_left <= to_corner), left, nearer)
