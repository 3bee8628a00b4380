from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "check_limits",
    "exif_orientation",
    "is_jpeg_whole",
    "jpeg_facts",
    "jpeg_sizes",
    "segments",
]

DEFAULT_LIMITS: dict[str, int]
DEFAULT_MAX_PIXELS: int

def check_limits(data: Buffer, **limits: int) -> None: ...
def exif_orientation(data: Buffer) -> int: ...
def is_jpeg_whole(data: Buffer) -> bool: ...
def jpeg_facts(data: Buffer) -> tuple[int, int, int, int, int, bool] | None: ...
def jpeg_sizes(
    heads: NDArray[np.uint8],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    sizes: NDArray[np.uint32],
) -> NDArray[np.bool_]: ...
def segments(data: Buffer) -> Iterator[tuple[int, int, int, bool]]: ...
