import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from ..row_source import RowDecoder

__all__ = ["WebpRows", "available", "decode", "library"]

def available() -> bool: ...
def library() -> str: ...
def decode(
    data: Buffer,
    channels: int = 3,
    region: tuple[int, int, int, int] | None = None,
    *,
    upright: bool = False,
    max_pixels: int = ...,
) -> NDArray[np.uint8] | None: ...

class WebpRows(RowDecoder): ...
