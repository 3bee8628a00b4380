from typing import Any

from .augment.augmenter import Augmenter
from .plan import RenderPlan
from .row_writer import RowWriter

__all__ = ["LinearPlan"]

class LinearPlan(RenderPlan):
    def __init__(self, recipe: Augmenter, *, dtype: str = "float32", **more: Any) -> None: ...

class LinearWriter(RowWriter): ...
