from typing import Any

from .augment.recipe import Recipe
from .plan import RenderPlan

__all__ = ["PatchPlan"]

class PatchPlan(RenderPlan):
    def __init__(self, recipe: Recipe, *, patch: int, **more: Any) -> None: ...
