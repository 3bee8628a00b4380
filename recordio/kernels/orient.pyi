import numpy as np
from numpy.typing import NDArray

__all__ = ["orient", "orient_region"]

def orient(image: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]: ...
def orient_region(
    width: int, height: int, orientation: int, region: tuple[int, int, int, int]
) -> tuple[int, int, int, int]: ...
