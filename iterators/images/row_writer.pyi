from typing import Any, Self

from .augment.augmenter import Augmenter
from .augment.recipe import Recipe
from .plan import RenderPlan

FLOAT_TYPES: tuple[str, ...]

class RowWriter:
    def __new__(cls, plan: RenderPlan) -> Self: ...

class LinearPlan(RenderPlan):
    def __init__(self, recipe: Augmenter, *, dtype: str = "float32", **more: Any) -> None: ...

class LinearWriter(RowWriter): ...

class PatchPlan(RenderPlan):
    def __init__(self, recipe: Recipe, *, patch: int, **more: Any) -> None: ...

class PatchWriter(RowWriter):
    def __new__(cls, plan: RenderPlan) -> Self: ...
