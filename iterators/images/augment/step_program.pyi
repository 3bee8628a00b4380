from collections.abc import Sequence
from typing import Any, Self

from .pixel_change import PixelChange
from .steps import CORNERS as CORNERS
from .steps import LEAN as LEAN
from .steps import PHOTOMETRIC as PHOTOMETRIC
from .steps import ROTATION as ROTATION
from .steps import STEPS as STEPS
from .steps import parameters_of as parameters_of
from .steps import ranges_of as ranges_of
from .steps import step_policy as step_policy
from .steps import walk as walk

METHODS: tuple[str, ...]
NAMES: tuple[str, ...]
OWN: tuple[str, ...]

class StepChange(PixelChange):
    def __new__(cls, recipe: Any, steps: Sequence[dict[str, Any]]) -> Self: ...
