import numpy as np
from numpy.typing import NDArray

__all__ = ["gather_rows", "gather_scaled"]

def gather_rows(
    source: NDArray[np.uint8], rows: NDArray[np.int64], target: NDArray[np.uint8]
) -> None: ...
def gather_scaled(
    source: NDArray[np.uint8],
    rows: NDArray[np.int64],
    factor: float,
    target: NDArray[np.float32],
    vectors: bool = True,
) -> None: ...
