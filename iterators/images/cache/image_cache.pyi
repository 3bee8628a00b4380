from collections.abc import Mapping

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

class MemoryImageCache(ImageCache):
    def __init__(self, count: int, channels: int, capacity: int) -> None: ...

def image_bytes(width: int, height: int, channels: int) -> int: ...

class FileImageCache(ImageCache):
    path: str
    def __init__(
        self, path: str, count: int, channels: int, capacity: int, settings: Mapping[str, str]
    ) -> None: ...
