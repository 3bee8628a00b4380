from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recordio.frames.reader import RecordReader

RESIZE_MODES: tuple[str, ...]

class Longest(NamedTuple):
    longest: int
    too_long: int
    values: int

def longest(reader: RecordReader, offsets: NDArray[np.int64], limit: int) -> Longest: ...
def longest_listed(
    starts: NDArray[np.int64], values: NDArray[np.float32], limit: int
) -> Longest: ...
def without_flat_objects(label: ArrayLike) -> NDArray[np.float32]: ...
