import numpy as np
from numpy.typing import NDArray

__all__ = ["LONGEST_SIDE", "SUBSAMPLINGS", "available", "encode"]

LONGEST_SIDE: int
SUBSAMPLINGS: dict[str, tuple[int, int]]

def available() -> bool: ...
def encode(
    pixels: NDArray[np.uint8],
    quality: int = 95,
    *,
    subsampling: str = "4:2:0",
    progressive: bool = False,
    optimize: bool = False,
    bgr: bool = False,
) -> bytes: ...
