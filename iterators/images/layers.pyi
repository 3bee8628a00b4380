from typing_extensions import Self

from .plan import RenderPlan

class LayerRenderer:
    plan: RenderPlan
    def __new__(cls, plan: RenderPlan) -> Self: ...
