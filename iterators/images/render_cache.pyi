from typing import Any

from .cache.image_cache import ImageCache
from .plan import RenderPlan
from .render import ImageShortcut
from .sources.source import Source

class CachedImages:
    cache: ImageCache
    def __init__(self, cache: ImageCache, recipe: Any) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def shortcut(
        self, plan: RenderPlan, source: Source | None = None, first: int = 0
    ) -> ImageShortcut: ...

class CacheShortcut(ImageShortcut):
    def __init__(
        self, images: CachedImages, plan: RenderPlan, source: Source | None = None, first: int = 0
    ) -> None: ...

def cached_bytes(recipe: Any, width: int, height: int) -> int: ...
def resizes(recipe: Any) -> bool: ...
