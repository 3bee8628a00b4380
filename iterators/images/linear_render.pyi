from typing import Any

from typing_extensions import Self

from .augment.augmenter import Augmenter
from .plan import RenderPlan
from .render import Renderer

class LinearPlan(RenderPlan):
    def __init__(self, recipe: Augmenter, *, dtype: str = "float32", **more: Any) -> None: ...
    def renderer(self) -> LinearRenderer: ...

class LinearRenderer(Renderer):
    def __new__(cls, plan: LinearPlan) -> Self: ...
