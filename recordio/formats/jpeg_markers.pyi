from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "check_limits",
    "jpeg_orientation",
    "jpeg_size",
    "jpeg_sizes",
    "segments",
    "tiff_orientation",
]

DEFAULT_LIMITS: dict[str, int]
DEFAULT_MAX_PIXELS: int

def check_limits(data: Buffer, **limits: int) -> None: ...
def jpeg_orientation(data: Buffer) -> int: ...
def jpeg_size(data: Buffer) -> tuple[int, int] | None: ...
def jpeg_sizes(
    heads: NDArray[np.uint8],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    sizes: NDArray[np.uint32],
) -> NDArray[np.bool_]: ...
def segments(data: Buffer) -> Iterator[tuple[int, int, int, bool]]: ...
def tiff_orientation(data: Buffer) -> int: ...
