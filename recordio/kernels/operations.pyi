import numpy as np
from numpy.typing import NDArray

__all__ = ["METHODS", "MOVING", "NAMES", "operate"]

NAMES: tuple[str, ...]
MOVING: tuple[str, ...]
METHODS: tuple[str, ...]

def operate(
    image: NDArray[np.uint8],
    name: str,
    value: float = 0.0,
    *,
    method: str = "nearest",
    fill: int | tuple[int, ...] = 0,
    variant: str | None = None,
) -> NDArray[np.uint8]: ...
