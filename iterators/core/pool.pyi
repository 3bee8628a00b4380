from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BufferPool"]

def aligned_memory(nbytes: int) -> NDArray[np.uint8]: ...

@final
class BufferPool:
    nbytes: int
    keep: int
    def __init__(
        self, nbytes: int, keep: int, allocate: Callable[[int], Any] | None = None
    ) -> None: ...
    def take(self, nbytes: int | None = None) -> Any: ...
