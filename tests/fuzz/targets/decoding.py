"""`decode_image`, `decode_many` and `image_info`: every argument against the whole image."""

from __future__ import annotations

import numpy as np

from recordio import decode_image, decode_many, image_info
from recordio.errors import ImageDecodeError

from .images import JPEG_WORDS, change_image
from .png import mend_png
from .target import FEW_PIXELS, Target, drawing, most_pixels

#: Largest sides that images are resized to.
LARGEST = 40


def attempt(data: bytes, **options) -> np.ndarray | None:
    """Pixels, or None if it is refused."""
    try:
        return decode_image(data, **options)
    except ImageDecodeError:
        return None


def check_decode_image(data: bytes) -> None:
    """Regions, layouts, memory, sizes and threads change nothing but what they are for."""
    draw = drawing(data)
    options = {
        "channels": draw.choice([3, 3, 1, 4]),
        "orient": draw.random() < 0.7,
        "max_pixels": most_pixels(data),
        "max_scans": 20,
    }
    whole = decode_image(data, **options)
    height, width, channels = whole.shape
    assert whole.dtype == np.uint8 and channels == options["channels"]
    assert width * height <= options["max_pixels"]
    strict = attempt(data, strict=True, **options)
    assert strict is None or np.array_equal(strict, whole)
    x, y = draw.randrange(width), draw.randrange(height)
    region = x, y, draw.randint(1, width - x), draw.randint(1, height - y)
    part = attempt(data, region=region, **options)
    if strict is not None:  # otherwise the decoder makes up pixels, other ones for a part
        wanted = whole[y : y + region[3], x : x + region[2]]
        assert part is not None and np.array_equal(part, wanted), region
    if width * height > FEW_PIXELS:
        return
    planes = np.zeros((channels, height, width), np.uint8)
    assert decode_image(data, layout="CHW", out=planes, **options) is planes
    assert np.array_equal(planes, whole.transpose(2, 0, 1))
    size = draw.randint(1, LARGEST), draw.randint(1, LARGEST)
    small = decode_image(data, size=size, **options)
    assert small.shape == (size[1], size[0], channels)
    for again in decode_many([data, data], threads=2, size=size, **options):
        assert np.array_equal(again, small)
    scale = draw.choice([2, 4, 8])
    scaled = attempt(data, scale=1 / scale, region=region, **options)
    if scaled is not None:
        left, top = x // scale, y // scale
        wide, high = -(-(x + region[2]) // scale), -(-(y + region[3]) // scale)
        assert scaled.shape == (high - top, wide - left, channels)
    try:
        info = image_info(data)
    except ImageDecodeError:
        return
    assert (info.width, info.height) in ((width, height), (height, width))


DECODE_IMAGE = Target(
    "decode_image",
    check_decode_image,
    change_image,
    mend_png,
    words=JPEG_WORDS + (b"eXIf", b"EXIF"),
)
