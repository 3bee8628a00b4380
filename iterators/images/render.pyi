from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recordio.formats.jpeg.entry_store import EntryStore
from recordio.formats.row_source import RowDecoder

from .cache.image_cache import ImageCache
from .plan import RenderPlan
from .sources.source import Source

CODECS: tuple[type[RowDecoder], ...]

class RenderedView:
    def __init__(self, plan: RenderPlan) -> None: ...

class Renderer:
    plan: RenderPlan
    def __new__(
        cls,
        plan: RenderPlan,
        *,
        strict: bool = False,
        beside: Renderer | None = None,
        entries: EntryStore | None = None,
    ) -> Self: ...
    def num_cut(self) -> int: ...
    def sample(
        self,
        record: bytes | bytearray | memoryview,
        epoch: int = 0,
        number: int = 0,
        draw: int = 0,
    ) -> tuple[NDArray[Any] | list[NDArray[Any]], NDArray[np.float32], int]: ...
    def place(self, width: int, height: int) -> None: ...
    def pixels(
        self, image: NDArray[np.uint8], epoch: int = 0, number: int = 0, draw: int = 0
    ) -> NDArray[Any] | list[NDArray[Any]]: ...

class CachedImages:
    cache: ImageCache
    def __init__(self, cache: ImageCache, recipe: Any) -> None: ...
    def stats(self) -> dict[str, int]: ...

class CacheReader:
    def __init__(
        self, images: CachedImages, plan: RenderPlan, source: Source | None = None, first: int = 0
    ) -> None: ...

def cached_bytes(recipe: Any, width: int, height: int) -> int: ...
def resizes(recipe: Any) -> bool: ...
