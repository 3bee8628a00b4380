import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVELS", "resize", "variants"]

LEVELS: dict[str, int]

def variants() -> tuple[str, ...]: ...
def resize(
    image: NDArray[np.uint8], size: tuple[int, int], method: int = 1
) -> NDArray[np.uint8]: ...
