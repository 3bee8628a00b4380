from collections.abc import Callable, Sequence
from typing import Any, Self

from ..render import Renderer
from .field import FieldPlan

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
    def crew(self, renderers: Sequence[Renderer]) -> FieldCrew: ...
    def begin(
        self, at: int, count: int, slots: int, size: tuple[int, int] | None = None
    ) -> None: ...
    def finish(
        self, at: int, records: Sequence[int], failures: list[tuple[int, Exception]]
    ) -> list[Any]: ...
    def release(self, at: int) -> None: ...
    def begin_slot(self, arrays: Sequence[Any], slot: int) -> None: ...
    def finish_slot(self, arrays: Sequence[Any], slot: int, record: int) -> None: ...

class FieldCrew:
    def __new__(cls, fields: FieldSet, renderers: Sequence[Renderer]) -> Self: ...
    def sample(
        self,
        renderer: Renderer,
        arrays: Sequence[Any],
        number: int,
        epoch: int = 0,
        draw: int = 0,
    ) -> None: ...
