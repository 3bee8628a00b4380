from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recordio.reader import RecordReader

class Source:
    count: int
    def record(self, number: int) -> bytes: ...

class RecordFiles(Source):
    def __init__(
        self,
        readers: Sequence[RecordReader],
        offsets: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> None: ...

class ImageFiles(Source):
    def __init__(
        self, paths: Sequence[str], ids: NDArray[np.uint64], labels: NDArray[np.float32]
    ) -> None: ...
