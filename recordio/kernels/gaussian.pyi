import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "blur"]

LARGEST: int
LEVELS: dict[str, int]

def blur(
    image: NDArray[np.uint8],
    kernel_size: tuple[int, int],
    sigma: float,
    variant: str | None = None,
) -> NDArray[np.uint8]: ...
