from collections.abc import Sequence
from typing import Any, Self

from .pixel_change import PixelChange
from .step_options import parameters_of as parameters_of
from .step_options import step_policy as step_policy
from .step_options import walk as walk

FLIPS: dict[str, int]
KINDS: dict[str, int]
METHODS: tuple[str, ...]
NAMES: tuple[str, ...]
OPERATIONS: dict[str, tuple[str, str | None]]

class StepChange(PixelChange):
    def __new__(cls, recipe: Any, steps: Sequence[dict[str, Any]]) -> Self: ...
