from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["brightness", "contrast", "lighting", "saturation", "shift_hls"]

def brightness(
    image: NDArray[np.uint8], factor: float, *, variant: str | None = None
) -> NDArray[np.uint8]: ...
def contrast(
    image: NDArray[np.uint8], factor: float, *, variant: str | None = None
) -> NDArray[np.uint8]: ...
def saturation(
    image: NDArray[np.uint8], factor: float, *, variant: str | None = None
) -> NDArray[np.uint8]: ...
def shift_hls(
    image: NDArray[np.uint8],
    hue: int = 0,
    lightness: int = 0,
    saturation: int = 0,
    *,
    variant: str | None = None,
) -> NDArray[np.uint8]: ...
def lighting(
    image: NDArray[np.uint8], delta: Sequence[float], *, variant: str | None = None
) -> NDArray[np.uint8]: ...
