"""Images as ``cv2.imdecode`` gives them for a mode: with OpenCV by OpenCV, without it the same.

Without OpenCV, images with alpha must have 8 bits, and Pillow decodes what is neither JPEG, PNG,
WebP nor PNM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recordio.errors import ImageDecodeError
from recordio.extras import command
from recordio.formats import by_opencv, by_pillow
from recordio.formats.decode import decode_image, image_info
from recordio.formats.general import is_foreign
from recordio.formats.image_size import check_for_opencv, complete_limits
from recordio.formats.table import row_of

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package

__all__ = [
    "COLOR",
    "GRAYSCALE",
    "IGNORE_ORIENTATION",
    "REDUCED_GRAYSCALE",
    "UNCHANGED",
    "decode_as_opencv",
    "imdecode",
]

#: Modes of ``cv2.imdecode``, which may be added up.
UNCHANGED, GRAYSCALE, COLOR, ANYDEPTH, IGNORE_ORIENTATION = -1, 0, 1, 2, 128
#: Grey, at a fraction of the size.
REDUCED_GRAYSCALE = {2: 16, 4: 32, 8: 64}
#: Channels as OpenCV gives them, by the number that is stored.
STORED = {1: 1, 2: 4, 3: 3, 4: 4}


def decode_as_opencv(
    data: Buffer, mode: int, limits: Mapping[str, int | None], lift: str = "max_pixels"
) -> NDArray[Any]:
    """Decode an image as ``cv2.imdecode`` does with a mode: grey, BGR or BGRA, 8 bits or as stored.

    `lift` is what raises the limit on pixels, for the error.
    """
    check_for_opencv(data, limits, lift)
    pixels = imdecode(data, mode, complete_limits(limits))
    if pixels is None:
        raise ImageDecodeError("OpenCV cannot decode the image: damaged, truncated or unsupported")
    return pixels


def imdecode(data: Buffer, mode: int, limits: dict[str, Any]) -> NDArray[Any] | None:
    """Decode as `decode_as_opencv`, without a look at the cost; None for what is no image."""
    row = row_of(data)
    if not is_foreign(row):
        return by_opencv.imdecode(data, mode)
    if mode == UNCHANGED and (row.rows is None or row.sample):
        pixels = by_pillow.decode(memoryview(data), row, limits, False, deep=True)
    elif mode == UNCHANGED:
        info = image_info(data)
        channels = (
            3 if row.kind == "jpeg" and info.channels != 1 else STORED.get(info.channels or 3, 3)
        )
        deep = info.bits == 16
        if deep and channels == 4:
            raise ModuleNotFoundError(
                f"only OpenCV reads four channels of 16 bits as they are stored: {command('cv2')}, "
                "or ask for colours or grey",
                name="cv2",
            )
        pixels = decode_image(
            data, channels=channels, dtype="uint16" if deep else "uint8", orient=False, **limits
        )
    else:
        by = next((by for by, bit in REDUCED_GRAYSCALE.items() if mode & bit), 1)
        deep = bool(mode & ANYDEPTH) and image_info(data).bits == 16
        pixels = decode_image(
            data,
            channels=3 if mode & COLOR else 1,
            dtype="uint16" if deep else "uint8",
            scale=1 / by,
            orient=not mode & IGNORE_ORIENTATION,
            **limits,
        )
    if pixels.shape[2] == 1:
        return np.ascontiguousarray(pixels[:, :, 0])
    return np.ascontiguousarray(pixels[..., [2, 1, 0, *range(3, pixels.shape[2])]])
