from collections.abc import Callable
from typing import Any

class BufferPool:
    nbytes: int
    keep: int
    def __init__(
        self, nbytes: int, keep: int, allocate: Callable[[int], Any] | None = None
    ) -> None: ...
    def take(self) -> Any: ...
