import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = ["KeyLookup"]

@disjoint_base
class KeyLookup:
    def __init__(self, keys: NDArray[np.int64]) -> None: ...
    def position_of(self, key: int) -> int: ...
