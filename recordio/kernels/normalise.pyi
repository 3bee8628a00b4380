from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["normalise"]

def normalise(
    image: NDArray[np.uint8],
    *,
    mean: float | Sequence[float] | NDArray[Any] = 0.0,
    std: float | Sequence[float] | NDArray[Any] = 1.0,
    scale: float = 1.0,
    contrast: float = 1.0,
    illumination: float = 0.0,
    mirror: bool = False,
    dtype: str = "float32",
    layout: str = "chw",
    mean_image: NDArray[np.float32] | None = None,
    out: NDArray[Any] | None = None,
    variant: str | None = None,
) -> NDArray[Any]: ...
