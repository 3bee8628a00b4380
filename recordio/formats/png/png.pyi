import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from ..row_source import RowDecoder

__all__ = ["PngRows", "PngValues", "available", "decode", "decoder", "library"]

def available() -> bool: ...
def decoder() -> str: ...
def library() -> str: ...
def decode(
    data: Buffer,
    channels: int = 3,
    region: tuple[int, int, int, int] | None = None,
    *,
    deep: bool = False,
    max_pixels: int = ...,
    vectors: bool = True,
) -> NDArray[np.uint8] | NDArray[np.uint16] | None: ...

class PngRows(RowDecoder): ...
class PngValues(PngRows): ...
