from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

def aligned_memory(nbytes: int) -> NDArray[np.uint8]: ...

class BufferPool:
    nbytes: int
    keep: int
    def __init__(
        self, nbytes: int, keep: int, allocate: Callable[[int], Any] | None = None
    ) -> None: ...
    def take(self) -> Any: ...
