from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["bounds", "forward_matrix", "warp"]

def forward_matrix(
    angle: float,
    shear: float,
    scale: float,
    ratio: float,
    size: tuple[int, int],
    canvas: tuple[float, float],
) -> NDArray[np.float32]: ...
def bounds(
    matrix: ArrayLike,
    image_size: tuple[int, int],
    window: tuple[int, int, int, int],
    method: int = 1,
) -> tuple[int, int, int, int]: ...
def warp(
    image: NDArray[np.uint8],
    matrix: ArrayLike,
    size: tuple[int, int],
    method: int = 1,
    fill: int | Sequence[int] = 255,
    window: tuple[int, int, int, int] | None = None,
    *,
    origin: tuple[int, int] = (0, 0),
    image_size: tuple[int, int] | None = None,
    variant: str | None = None,
) -> NDArray[np.uint8]: ...
