from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recordio.errors import RecordIOError
from recordio.formats.jpeg.entry_store import EntryStore

from .fields.field import FieldPlan
from .plan import RenderPlan
from .render import CachedImages
from .sources.source import Source
from .workers import PlanGroup

class Stage:
    batch_size: int
    depth: int
    ended: bool
    caches: list[CachedImages]
    def __new__(
        cls,
        source: Source,
        *groups: PlanGroup,
        batch_size: int,
        threads: int,
        depth: int,
        allocate: Callable[[int], Any] | None = None,
        strict: bool = False,
        fields: Sequence[FieldPlan] = (),
        entries: EntryStore | None = None,
        on_cut: Callable[[], object] | None = None,
    ) -> Self: ...
    @property
    def pending(self) -> int: ...
    def start(self) -> None: ...
    def needed(
        self, records: NDArray[np.int64], epoch: int, draws: NDArray[np.int64]
    ) -> NDArray[np.int64]: ...
    def submit(
        self,
        records: NDArray[np.int64],
        epoch: int,
        draws: NDArray[np.int64] | None = None,
        sizes: tuple[int, int] | NDArray[np.int32] | None = None,
        slots: int | None = None,
        length: int = 0,
    ) -> None: ...
    def collect(
        self,
    ) -> tuple[
        NDArray[Any] | list[NDArray[Any]],
        NDArray[np.float32],
        NDArray[np.uint64],
        list[tuple[int, RecordIOError]],
    ]: ...
    def retry(
        self,
        record: int,
        epoch: int,
        draw: int,
        data: NDArray[Any],
        label: NDArray[np.float32],
        ids: NDArray[np.uint64],
        slot: int,
        size: tuple[int, int] | None = None,
    ) -> None: ...
    def stats(self) -> dict[str, float]: ...
    def use_threads(self, count: int) -> None: ...
    def ready(self) -> bool: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...

class SeparateArrays(list[NDArray[Any]]):
    values: NDArray[Any] | None
    @property
    def shape(self) -> tuple[int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def joined(self) -> NDArray[Any]: ...

class PatchArrays(list[NDArray[Any]]): ...

class BatchMemory:
    plans: list[RenderPlan]
    num_views: int
    num_arrays: int
    def __init__(
        self,
        plan: RenderPlan,
        batch_size: int,
        keep: int,
        allocate: Callable[[int], Any] | None,
    ) -> None: ...
    def own_arrays(self, data: list[Any]) -> Any: ...
