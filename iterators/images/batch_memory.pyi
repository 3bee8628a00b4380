from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from .plan import RenderPlan

__all__ = ["BatchMemory", "SeparateArrays"]

class SeparateArrays(list[NDArray[Any]]): ...

class BatchMemory:
    plans: list[RenderPlan]
    num_views: int
    def __init__(
        self,
        plan: RenderPlan,
        batch_size: int,
        keep: int,
        allocate: Callable[[int], Any] | None,
    ) -> None: ...
