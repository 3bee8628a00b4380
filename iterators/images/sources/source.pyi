from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from recordio.frames.reader import RecordReader

class Source:
    count: int
    def announce(self, numbers: NDArray[np.int64]) -> int: ...
    def record(self, number: int) -> bytes: ...

class RecordFiles(Source):
    def __new__(
        cls,
        readers: Sequence[RecordReader],
        offsets: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> Self: ...

class ImageFiles(Source):
    def __new__(
        cls, paths: Sequence[str], ids: NDArray[np.uint64], labels: NDArray[np.float32]
    ) -> Self: ...
