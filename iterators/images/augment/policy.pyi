from typing import Any, Self

from .pixel_change import PixelChange
from .policies import Policy
from .recipe import Recipe

METHODS: tuple[str, ...]
MOST_DEPTH: int
MOST_LAYERS: int
MOST_WIDTH: int
NAMES: tuple[str, ...]

class PolicyChange(PixelChange):
    policy: Policy
    def __new__(cls, recipe: Recipe) -> Self: ...
    def drawn(
        self, key: int, epoch: int, record: int, occurrence: int = 0
    ) -> tuple[list[tuple[str, float, str]], dict[str, Any]]: ...

def drawn_operations(
    recipe: Recipe, key: int, epoch: int, record: int, occurrence: int = 0
) -> tuple[list[tuple[str, float, str]], dict[str, Any]]: ...
