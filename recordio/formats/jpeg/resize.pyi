import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = ["decode_resized"]

def decode_resized(
    data: Buffer,
    short_side: int,
    method: int = 1,
    channels: int = 3,
    *,
    square: bool = False,
    largest_side: int = 65500,
) -> NDArray[np.uint8] | None: ...
