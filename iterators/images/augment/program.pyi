from collections.abc import Sequence
from typing import Any, Self

from .pixel_changes import PixelChange
from .policies import Policy
from .recipe import Recipe
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
MOST_DEPTH: int
MOST_LAYERS: int
MOST_WIDTH: int
NAMES: tuple[str, ...]
OWN: tuple[str, ...]

class PolicyChange(PixelChange):
    def __new__(cls, recipe: Recipe, policy: Policy | None = None) -> Self: ...

class StepChange(PixelChange):
    def __new__(cls, recipe: Any, steps: Sequence[dict[str, Any]]) -> Self: ...
