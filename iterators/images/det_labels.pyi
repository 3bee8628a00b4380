import numpy as np
from numpy.typing import ArrayLike, NDArray

from recordio.reader import RecordReader

def longest(reader: RecordReader, offsets: NDArray[np.int64]) -> tuple[int, int]: ...
def transform(
    label: ArrayLike,
    *,
    mirror: bool = False,
    pad: tuple[float, float, float] | None = None,
    crop: tuple[float, float, float, float] | None = None,
) -> NDArray[np.float32]: ...
