from typing_extensions import Self

from .render_plan import RenderPlan

class LayerRenderer:
    plan: RenderPlan
    def __new__(cls, plan: RenderPlan) -> Self: ...
