from typing import Any, Self

from .pixel_change import PixelChange
from .recipe import Recipe

class FaceChange(PixelChange):
    def __new__(cls, recipe: Recipe) -> Self: ...
    @staticmethod
    def wanted(recipe: Recipe) -> bool: ...

def drawn_face(
    recipe: Recipe, key: int, epoch: int, record: int, occurrence: int = 0
) -> dict[str, Any]: ...
