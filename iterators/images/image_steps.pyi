from collections.abc import Sequence
from typing import Self

from .augment.pixel_changes import PixelChange
from .plan import RenderPlan
from .row_writer import RowWriter

class StepRunner:
    def __new__(
        cls, plan: RenderPlan, changes: Sequence[PixelChange], writer: RowWriter | None
    ) -> Self: ...
