from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recordio.formats.jpeg.entry_store import EntryStore

from .det_render import Mosaic
from .fields.field import FieldPlan
from .plan import RenderPlan
from .render import CachedImages, Renderer
from .sources.source import Source

def makes_mosaics(plan: RenderPlan) -> bool: ...

class PlanGroup:
    plan: RenderPlan
    cached: CachedImages | None
    first: int
    def __init__(
        self, plan: RenderPlan, cached: CachedImages | None = None, first: int = 0
    ) -> None: ...

def form_of(plan: RenderPlan) -> tuple[tuple[int, ...], str, np.dtype[Any]]: ...

class PlanGroups:
    all: list[PlanGroup]
    mosaics: bool
    def __init__(self, groups: tuple[PlanGroup, ...]) -> None: ...
    def caches(self) -> list[CachedImages]: ...
    def workers(
        self,
        source: Source,
        strict: bool,
        fields: Any = None,
        entries: EntryStore | None = None,
        number: int = 0,
    ) -> StageWorkers: ...
    def give_up_caches(self) -> None: ...
    def needed(
        self,
        workers: StageWorkers,
        records: NDArray[np.int64],
        epoch: int,
        draws: NDArray[np.int64],
    ) -> NDArray[np.int64]: ...
    def mosaic_stats(self, teams: list[StageWorkers]) -> dict[str, int]: ...
    def counters(self, teams: list[StageWorkers]) -> dict[str, float]: ...

class StageWorkers:
    renderers: list[Renderer]
    mosaics: list[Mosaic | None]
    def __init__(
        self,
        renderers: list[Renderer],
        mosaics: list[Mosaic | None],
        fields: Any = None,
        number: int = 0,
    ) -> None: ...

class FieldSet:
    plans: tuple[FieldPlan, ...]
    def __new__(
        cls,
        plans: Sequence[FieldPlan],
        *,
        batch_size: int,
        depth: int,
        allocate: Callable[[int], Any] | None = None,
    ) -> Self: ...
    def begin(
        self, at: int, count: int, slots: int, size: tuple[int, int] | None = None
    ) -> None: ...
    def finish(
        self, at: int, records: Sequence[int], failures: list[tuple[int, Exception]]
    ) -> list[Any]: ...
    def release(self, at: int) -> None: ...
    def begin_slot(self, arrays: Sequence[Any], slot: int) -> None: ...
    def finish_slot(self, arrays: Sequence[Any], slot: int, record: int) -> None: ...

class FieldWorkers:
    def __new__(cls, fields: FieldSet, renderers: Sequence[Renderer]) -> Self: ...
    def sample(
        self,
        renderer: Renderer,
        arrays: Sequence[Any],
        number: int,
        epoch: int = 0,
        draw: int = 0,
    ) -> None: ...
