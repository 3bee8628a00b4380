from typing import Self

from .pixel_change import PixelChange
from .policies import Policy
from .recipe import Recipe

METHODS: tuple[str, ...]
MOST_DEPTH: int
MOST_LAYERS: int
MOST_WIDTH: int
NAMES: tuple[str, ...]

class PolicyChange(PixelChange):
    def __new__(cls, recipe: Recipe, policy: Policy | None = None) -> Self: ...
