from typing import Self

from .plan import RenderPlan

class RowWriter:
    def __new__(cls, plan: RenderPlan) -> Self: ...
