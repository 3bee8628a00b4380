import numpy as np
from numpy.typing import NDArray

class Windows: ...

def draw_by_class(
    key: int,
    starts: NDArray[np.int64],
    records: NDArray[np.int64],
    images: int,
    classes: int,
    positions: NDArray[np.int64],
) -> NDArray[np.int64]: ...
