import numpy as np
from numpy.typing import NDArray

__all__ = ["orient"]

def orient(image: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]: ...
