from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recordio.errors import RecordIOError
from recordio.formats.jpeg.entry_store import EntryStore

from .fields.field import FieldPlan
from .render_cache import CachedImages
from .sections import Section
from .sources.source import Source

class Stage:
    batch_size: int
    depth: int
    caches: list[CachedImages]
    def __new__(
        cls,
        source: Source,
        *sections: Section,
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
