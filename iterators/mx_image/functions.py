"""The functions of MXNet's `mx.image` on single images: decoding, sizes, borders, colours, angles.

An image is a NumPy array (height, width, channels) of uint8, float32 or float64; colours are RGB.
Only the rotations take channels first, and float32.  Every function returns a new array and leaves
its argument as it is.  Random numbers come from `iterators.core.example_random`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.errors import ImageDecodeError, RecordIOError
from recordio.extras import need
from recordio.formats import by_opencv
from recordio.formats.decode import decode_image
from recordio.kernels.resample import resize as resize_uint8
from recordio.keywords.checks import choice, integer

from ..core.example_random import example_random, example_uniform

NEAREST, BILINEAR, CUBIC, AREA = 0, 1, 2, 3
BY_DIRECTION, AT_RANDOM = 9, 10
METHODS = (0, 1, 2, 3, 4, BY_DIRECTION, AT_RANDOM)
MOST_PIXELS = (1 << 31) - 1  # along one side
IMAGE_TYPES = ("uint8", "float32", "float64")


def image_of(src: Any) -> np.ndarray:
    """Return the array of an image, checked: three axes, at least a pixel, uint8 or float."""
    image = np.asarray(src)
    if image.dtype.name not in IMAGE_TYPES:
        raise TypeError(f"an image of {image.dtype}: expected {', '.join(IMAGE_TYPES)}")
    if image.ndim != 3 or not image.size:
        raise ValueError(
            f"an image of shape {image.shape}: expected (height, width, channels), all at least 1"
        )
    return image


def imread(filename: Any, flag: int = 1, to_rgb: bool = True, out: Any = None) -> np.ndarray:
    """Read and decode an image file.

    Parameters
    ----------
    filename : str or os.PathLike
        A path or a URL.
    flag, to_rgb, out
        As for `imdecode`.

    Returns
    -------
    numpy.ndarray of uint8, (height, width, channels)

    Raises
    ------
    OSError
        If there is no such file.
    ImageDecodeError
        If it holds no image, or a damaged one; the error names the file.

    Examples
    --------
    >>> import cv2, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "red.png")
    ...     _ = cv2.imwrite(path, np.full((2, 3, 3), (0, 0, 255), np.uint8))
    ...     imread(path)[0, 0].tolist()
    [255, 0, 0]
    """
    with StoredFile.at(filename).open() as file:
        content = file.read()
    try:
        return imdecode(content, flag, to_rgb, out)
    except RecordIOError as error:
        raise ImageDecodeError(error.reason, path=os.fspath(filename)) from None


def imdecode(buf: Any, flag: int = 1, to_rgb: bool = True, out: Any = None) -> np.ndarray:
    """Decode an image, turned upright as its EXIF orientation says.

    Parameters
    ----------
    buf : bytes-like
        The content of an image file.
    flag : {1, 0}
        1 for three channels, 0 for grey with one.
    to_rgb : bool
        Order of the channels: RGB, or OpenCV's BGR.
    out : numpy.ndarray of uint8, (height, width, channels), optional
        Array to be filled and returned.

    Returns
    -------
    numpy.ndarray of uint8, (height, width, channels)

    Raises
    ------
    TypeError
        If `buf` holds no bytes.
    ImageDecodeError
        If it is no image, or a damaged or truncated one.

    Examples
    --------
    >>> import cv2
    >>> content = cv2.imencode(".png", np.full((2, 3, 3), (0, 0, 255), np.uint8))[1].tobytes()
    >>> imdecode(content)[0, 0].tolist(), imdecode(content, to_rgb=False)[0, 0].tolist()
    ([255, 0, 0], [0, 0, 255])
    >>> imdecode(content, flag=0).shape
    (2, 3, 1)
    """
    flag = choice("flag", flag, (1, 0))
    if isinstance(buf, str):
        raise TypeError("buf is a str: pass the bytes of an image file, or its path to imread")
    if isinstance(buf, np.ndarray):
        buf = np.ascontiguousarray(buf)
    image = decode_image(buf, channels=3 if flag else 1)
    if flag and not to_rgb:
        image = np.ascontiguousarray(image[:, :, ::-1])
    return _into(out, image)


def imresize(src: Any, w: int, h: int, interp: int = 1, out: Any = None) -> np.ndarray:
    """Resize an image.

    Parameters
    ----------
    src : array_like
        The image.
    w, h : int
        Width and height of the result, at least 1.
    interp : {1, 0, 2, 3, 4, 9, 10}
        1 bilinear, 0 nearest, 2 cubic, 3 area, 4 Lanczos, 9 cubic to grow, area to shrink, else
        bilinear, 10 one of the first five at random.
    out : numpy.ndarray, optional
        Array to be filled and returned.

    Returns
    -------
    numpy.ndarray, (h, w, channels)
        Of the type of `src`.

    Examples
    --------
    >>> imresize(np.arange(4, dtype=np.float32)[None, :, None], 2, 1).ravel()
    array([0.5, 2.5], dtype=float32)
    """
    image = image_of(src)
    width, height = (integer(n, v, low=1, high=MOST_PIXELS) for n, v in (("w", w), ("h", h)))
    method = interpolation(interp, image.shape[:2], (height, width))
    if image.dtype == np.uint8 and image.shape[2] in (1, 3, 4):
        return _into(out, resize_uint8(np.ascontiguousarray(image), (width, height), method))
    cv2 = need("cv2", "resizing other images than those of uint8 with 1, 3 or 4 channels")
    result = cv2.resize(image, (width, height), interpolation=method)
    return _into(out, result if result.ndim == 3 else result[:, :, None])


def interpolation(interp: int, old: Sequence[int], new: Sequence[int]) -> int:
    """Return the method, 0 to 4, that `interp` stands for between two sizes (height, width)."""
    choice("interp", interp, METHODS)
    if interp == AT_RANDOM:
        return example_random().randint(0, 4)
    if interp != BY_DIRECTION:
        return interp
    if new[0] > old[0] and new[1] > old[1]:
        return CUBIC
    return AREA if new[0] < old[0] and new[1] < old[1] else BILINEAR


def resize_short(src: Any, size: int, interp: int = 2) -> np.ndarray:
    """Resize an image so that its shorter side has a length; the other side is rounded down.

    Parameters
    ----------
    src : array_like
        The image.
    size : int
        Pixels of the shorter side.
    interp : int
        As for `imresize`.

    Examples
    --------
    >>> resize_short(np.zeros((30, 41, 3), np.uint8), 20).shape
    (20, 27, 3)
    """
    image = image_of(src)
    height, width = image.shape[:2]
    size = integer("size", size, low=1, high=MOST_PIXELS)
    if height > width:
        return imresize(image, size, size * height // width, interp)
    return imresize(image, size * width // height, size, interp)


def color_normalize(src: Any, mean: Any, std: Any = None) -> np.ndarray:
    """Subtract a mean and divide by a standard deviation.

    Parameters
    ----------
    src : array_like
        The image.
    mean, std : array_like of 1 or as many numbers as there are channels, optional
        In grey levels; None leaves out the step.

    Returns
    -------
    numpy.ndarray of float32
        Or of float64 if `src` is.

    Examples
    --------
    >>> color_normalize(np.full((1, 1, 3), 9, np.uint8), [1, 2, 3], 2).tolist()
    [[[4.0, 3.5, 3.0]]]
    """
    image = floating(src)
    if mean is not None:
        image = image - per_row(mean, image)
    return image if std is None else image / per_row(std, image)


def per_row(values: Any, image: np.ndarray) -> np.ndarray:
    """Return values of the channels for each pixel of a row: NumPy is faster with them."""
    row = np.empty(image.shape[1:], image.dtype)
    row[:] = values
    return row


def mirrored(image: np.ndarray) -> np.ndarray:
    """Exchange left and right."""
    return np.ascontiguousarray(image[:, ::-1])


def floating(src: Any) -> np.ndarray:
    """Return the image itself if its type is a float type, else as float32."""
    image = image_of(src)
    return image.astype(np.float32) if image.dtype == np.uint8 else image


def copyMakeBorder(
    src: Any,
    top: int,
    bot: int,
    left: int,
    right: int,
    type: int = 0,
    value: float = 0.0,
    values: Sequence[float] = (),
    out: Any = None,
) -> np.ndarray:
    """Put a border around an image.

    Parameters
    ----------
    src : array_like
        The image, of at most 4 channels.
    top, bot, left, right : int
        Rows and columns of the border.
    type : {0, 1, 2, 3, 4, 16}
        OpenCV's border types: 0 (and 16) constant, 1 the edge repeated, 2 mirrored with the edge, 3
        continued from the other side, 4 mirrored without the edge.
    value : float
        Constant of all channels.
    values : sequence of float
        Constants of the channels, instead of `value`; those that are missing are 0.
    out : numpy.ndarray, optional
        Array to be filled and returned.

    Returns
    -------
    numpy.ndarray, (top + height + bot, left + width + right, channels)
        Of the type of `src`.

    Examples
    --------
    >>> copyMakeBorder(np.ones((1, 1, 1), np.uint8), 0, 0, 1, 2, value=7).ravel().tolist()
    [7, 1, 7, 7]
    """
    image = image_of(src)
    if image.shape[2] > 4:
        raise ValueError(f"a border around {image.shape[2]} channels: expected at most 4")
    sides = (("top", top), ("bot", bot), ("left", left), ("right", right))
    widths = [integer(name, side, low=0, high=MOST_PIXELS) for name, side in sides]
    kind = choice("type", type, (0, 1, 2, 3, 4, 16))
    colour = [float(item) for item in values] or [float(value)] * 4
    if not by_opencv.available():
        return _into(out, _bordered(image, widths, kind, colour))
    import cv2

    result: Any = cv2.copyMakeBorder(image, *widths, kind, value=colour)  # type: ignore[call-overload]
    return _into(out, result if result.ndim == 3 else result[:, :, None])


def _bordered(image: np.ndarray, widths: list[int], kind: int, colour: list[float]) -> np.ndarray:
    """Put a border around an image without OpenCV."""
    top, bottom, left, right = widths
    around = ((top, bottom), (left, right), (0, 0))
    if mode := {1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}.get(kind):
        return np.pad(image, around, mode)  # type: ignore[call-overload]
    values = np.array([*colour, 0, 0, 0][: image.shape[2]])
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        values = np.clip(np.rint(values), limits.min, limits.max)
    height, width = image.shape[:2]
    result = np.empty((top + height + bottom, left + width + right, image.shape[2]), image.dtype)
    result[...] = values
    result[top : top + height, left : left + width] = image
    return result


def _into(out: Any, image: np.ndarray) -> np.ndarray:
    """Return the image, in `out` if there is one."""
    if out is None:
        return image
    if out.shape != image.shape or out.dtype != image.dtype:
        raise ValueError(
            f"out is {out.dtype} of shape {out.shape}, the image is {image.dtype} of shape "
            f"{image.shape}"
        )
    out[...] = image
    return out


def imrotate(
    src: Any, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False
) -> np.ndarray:
    """Rotate an image, or the images of a batch, around the centre.

    Parameters
    ----------
    src : array_like of float32, (channels, height, width) or (n, channels, height, width)
    rotation_degrees : float, or array_like of float, (n,)
        In degrees, counter-clockwise; for a batch one angle for all or one for each.
    zoom_in : bool
        Enlarge so far that nothing outside the image is seen.
    zoom_out : bool
        Shrink so far that all of the image is seen.

    Returns
    -------
    numpy.ndarray of float32
        In the shape of `src`, bilinear between pixels and 0 outside the image.

    Raises
    ------
    TypeError
        If `src` is not float32, or an image has several angles.
    ValueError
        If `src` has another number of axes, the angles are not as many as the images, or both kinds
        of zoom are asked for.

    Examples
    --------
    >>> imrotate(np.float32([[[1, 2], [3, 4]]]), 90).round(3).tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]
    """
    images = np.asarray(src)
    if zoom_in and zoom_out:
        raise ValueError("zoom_in and zoom_out: give one of them")
    if images.dtype != np.float32:
        raise TypeError(f"images of {images.dtype}: expected float32")
    if images.ndim not in (3, 4):
        raise ValueError(
            f"images of shape {images.shape}: expected (channels, height, width) or a batch of them"
        )
    if images.ndim == 3:
        if np.ndim(rotation_degrees):
            raise TypeError("one image is rotated by one angle")
        return _rotated(images, float(rotation_degrees), zoom_in, zoom_out)
    angles = np.asarray(rotation_degrees, np.float64)
    if angles.ndim == 0:
        angles = np.full(len(images), angles)
    if angles.shape != (len(images),):
        raise ValueError(f"angles of shape {angles.shape} for {len(images)} images")
    pairs = zip(images, angles.tolist(), strict=True)
    rotated = [_rotated(image, angle, zoom_in, zoom_out) for image, angle in pairs]
    return np.stack(rotated) if rotated else images.copy()


def random_rotate(
    src: Any, angle_limits: Sequence[float], zoom_in: bool = False, zoom_out: bool = False
) -> np.ndarray:
    """Rotate by a random angle; each image of a batch by its own.

    Parameters
    ----------
    src
        As for `imrotate`.
    angle_limits : (float, float)
        Least and largest angle, in degrees.
    zoom_in, zoom_out : bool
        As for `imrotate`.

    Examples
    --------
    >>> random_rotate(np.ones((2, 3, 8, 8), np.float32), (-10, 10), zoom_in=True).shape
    (2, 3, 8, 8)
    """
    images = np.asarray(src)
    low, high = angle_limits
    angles = example_uniform(low, high, len(images) if images.ndim == 4 else 1)
    return imrotate(images, angles if images.ndim == 4 else angles[0], zoom_in, zoom_out)


def _rotated(image: np.ndarray, degrees: float, zoom_in: bool, zoom_out: bool) -> np.ndarray:
    _, height, width = image.shape
    angle = math.radians(degrees)
    zoom = _zoom(height, width, angle, zoom_in) if zoom_in or zoom_out else 1.0
    x = zoom * (np.arange(width) - (width - 1) / 2)
    y = zoom * (np.arange(height) - (height - 1) / 2)[:, None]
    # Source of each pixel of the result.
    columns = x * math.cos(angle) - y * math.sin(angle) + (width - 1) / 2
    rows = x * math.sin(angle) + y * math.cos(angle) + (height - 1) / 2
    left, top = np.floor(columns).astype(int), np.floor(rows).astype(int)
    result = np.zeros(image.shape, np.float64)
    for i, down in ((top, 1 - (rows - top)), (top + 1, rows - top)):
        for j, across in ((left, 1 - (columns - left)), (left + 1, columns - left)):
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            pixels = image[:, np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)]
            result += pixels * (down * across * inside)
    return result.astype(np.float32)


def _zoom(height: int, width: int, angle: float, zoom_in: bool) -> float:
    """Return the distance in the image between pixels that are neighbours in the result."""
    diagonal, corner = math.hypot(height, width), math.atan(height / width)
    turned = [corner + abs(angle), corner - abs(angle)]
    x = max(abs(diagonal * math.cos(direction)) for direction in turned)
    y = max(abs(diagonal * math.sin(direction)) for direction in turned)
    return min(width / x, height / y) if zoom_in else max(x / width, y / height)
