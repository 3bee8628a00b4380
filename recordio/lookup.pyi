import numpy as np
from numpy.typing import NDArray

class KeyLookup:
    def __init__(self, keys: NDArray[np.int64]) -> None: ...
