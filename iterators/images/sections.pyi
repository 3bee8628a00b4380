from .plan import RenderPlan
from .render import Renderer
from .render_cache import CachedImages
from .sources.source import Source

class Section:
    plan: RenderPlan
    cached: CachedImages | None
    first: int
    def __init__(
        self, plan: RenderPlan, cached: CachedImages | None = None, first: int = 0
    ) -> None: ...

class Sections:
    all: list[Section]
    def __init__(self, sections: tuple[Section, ...]) -> None: ...
    def caches(self) -> list[CachedImages]: ...
    def crew(self, source: Source, strict: bool) -> Crew: ...
    def give_up_caches(self) -> None: ...

class Crew:
    renderers: list[Renderer]
    def __init__(self, renderers: list[Renderer]) -> None: ...
