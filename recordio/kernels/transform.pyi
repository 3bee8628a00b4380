from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["affine_map", "perspective_map", "rotation_map", "transform"]

METHODS: tuple[str, ...]
LEVELS: dict[str, int]

def transform(
    image: NDArray[np.uint8],
    matrix: Sequence[float],
    *,
    method: str = "nearest",
    fill: int | Sequence[int] = 0,
    size: tuple[int, int] | None = None,
    window: tuple[int, int, int, int] | None = None,
    variant: str | None = None,
) -> NDArray[np.uint8]: ...
def rotation_map(
    degrees: float, size: tuple[int, int], expand: bool = False
) -> tuple[list[float], tuple[int, int]]: ...
def affine_map(
    degrees: float,
    translate: tuple[float, float],
    scale: float,
    shear: tuple[float, float],
    size: tuple[int, int],
) -> list[float]: ...
def perspective_map(
    ends: Sequence[tuple[int, int]], size: tuple[int, int]
) -> list[float] | None: ...
