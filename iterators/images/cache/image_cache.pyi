import numpy as np
from numpy.typing import NDArray

LARGEST_CAPACITY: int
WORD_LENGTH_BITS: int
WORD_UNIT: int

class ImageCache:
    count: int
    channels: int
    capacity: int
    @property
    def used(self) -> int: ...
    @property
    def images(self) -> int: ...
    def store(
        self,
        number: int,
        pixels: NDArray[np.uint8],
        source_size: tuple[int, int] | None = None,
    ) -> bool: ...
    def load(self, number: int) -> tuple[NDArray[np.uint8], tuple[int, int]] | None: ...

class MemoryImageCache(ImageCache):
    def __init__(self, count: int, channels: int, capacity: int) -> None: ...

def image_bytes(width: int, height: int, channels: int) -> int: ...
