from typing import Any, Self

from .augment.det_recipe import DetRecipe
from .augment.geometry import GeometryDrawer
from .plan import LabelReader, RenderPlan
from .render import Renderer
from .row_writer import RowWriter

class DetPlan(RenderPlan):
    def __init__(self, recipe: DetRecipe, *, raw_width: int = 0, **more: Any) -> None: ...

class ObjectLabels(LabelReader):
    def __init__(self, plan: DetPlan) -> None: ...

class DetGeometry(GeometryDrawer):
    def __init__(self, plan: DetPlan, labels: ObjectLabels) -> None: ...

class CanvasWriter(RowWriter):
    def __new__(cls, plan: RenderPlan) -> Self: ...

class Mosaic:
    def __new__(cls, renderer: Renderer, first: int, count: int) -> Self: ...
