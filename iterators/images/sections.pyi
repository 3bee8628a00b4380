from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordio.formats.jpeg.entry_store import EntryStore

from .mosaic import Mosaic
from .plan import RenderPlan
from .render import Renderer
from .render_cache import CachedImages
from .sources.source import Source

def makes_mosaics(plan: RenderPlan) -> bool: ...

class Section:
    plan: RenderPlan
    cached: CachedImages | None
    first: int
    def __init__(
        self, plan: RenderPlan, cached: CachedImages | None = None, first: int = 0
    ) -> None: ...

def form_of(plan: RenderPlan) -> tuple[tuple[int, ...], str, np.dtype[Any]]: ...

class Sections:
    all: list[Section]
    mosaics: bool
    def __init__(self, sections: tuple[Section, ...]) -> None: ...
    def caches(self) -> list[CachedImages]: ...
    def crew(
        self,
        source: Source,
        strict: bool,
        fields: Any = None,
        entries: EntryStore | None = None,
        number: int = 0,
    ) -> Crew: ...
    def give_up_caches(self) -> None: ...
    def needed(
        self, crew: Crew, records: NDArray[np.int64], epoch: int, draws: NDArray[np.int64]
    ) -> NDArray[np.int64]: ...
    def mosaic_stats(self, crews: list[Crew]) -> dict[str, int]: ...
    def counters(self, crews: list[Crew]) -> dict[str, float]: ...

class Crew:
    renderers: list[Renderer]
    mosaics: list[Mosaic | None]
    def __init__(
        self,
        renderers: list[Renderer],
        mosaics: list[Mosaic | None],
        fields: Any = None,
        number: int = 0,
    ) -> None: ...
