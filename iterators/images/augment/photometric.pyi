from typing import Self

from .pixel_change import PixelChange
from .recipe import Recipe

NAMES: tuple[str, ...]

class Photometric(PixelChange):
    def __new__(cls, recipe: Recipe) -> Self: ...
    @staticmethod
    def wanted(recipe: Recipe) -> bool: ...

def drawn_photometric(
    recipe: Recipe, key: int, epoch: int, record: int, occurrence: int = 0
) -> list[tuple[str, float]]: ...
