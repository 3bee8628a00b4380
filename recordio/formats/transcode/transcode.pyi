from typing import Literal, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = ["JpegCoefficients", "coefficients", "optimize_jpeg", "read_all_codes", "rewrite"]

MAX_RESTART: int
TABLES: dict[str, int]

class JpegCoefficients(NamedTuple):
    blocks: list[NDArray[np.int16]]
    quantisation: list[NDArray[np.uint16]]

def rewrite(
    data: Buffer,
    restart: SupportsIndex | str = "auto",
    tables: Literal["auto", "optimal", "standard"] = "auto",
    **limits: int,
) -> tuple[bytes | None, str]: ...
def optimize_jpeg(data: Buffer, restart: SupportsIndex | str = "auto", **limits: int) -> bytes: ...
def coefficients(data: Buffer, **limits: int) -> JpegCoefficients: ...
def read_all_codes(data: Buffer, **limits: int) -> bool: ...
