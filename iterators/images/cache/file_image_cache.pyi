from collections.abc import Mapping

from .image_cache import ImageCache

class FileImageCache(ImageCache):
    path: str
    def __init__(
        self, path: str, count: int, channels: int, capacity: int, settings: Mapping[str, str]
    ) -> None: ...
