from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .plan import RenderPlan

__all__ = ["BatchMemory", "PatchArrays", "SeparateArrays"]

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
