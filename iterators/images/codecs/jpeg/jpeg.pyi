from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "DEFAULT_MAX_SCANS",
    "DEFAULT_MAX_SCAN_PIXELS",
    "JpegInfo",
    "available",
    "check_limits",
    "decode",
    "entropy_decoder",
    "header",
    "library",
    "orient",
    "orient_region",
]

DEFAULT_MAX_PIXELS: int
DEFAULT_MAX_SCANS: int
DEFAULT_MAX_SCAN_PIXELS: int

class JpegInfo(NamedTuple):
    width: int
    height: int
    components: int
    orientation: int
    progressive: bool
    supported: bool

def available() -> bool: ...
def library() -> str: ...
def entropy_decoder() -> str: ...
def check_limits(
    data: Buffer, *, max_pixels: int = ..., max_scans: int = 256, max_scan_pixels: int = ...
) -> None: ...
def header(data: Buffer) -> JpegInfo: ...
def decode(
    data: Buffer,
    channels: int = 3,
    region: tuple[int, int, int, int] | None = None,
    denominator: int = 1,
    *,
    max_pixels: int = ...,
    max_scans: int = 256,
    max_scan_pixels: int = ...,
) -> NDArray[np.uint8]: ...
def orient(image: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]: ...
def orient_region(
    width: int, height: int, orientation: int, region: tuple[int, int, int, int]
) -> tuple[int, int, int, int]: ...
