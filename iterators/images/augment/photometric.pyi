from typing import Self

from .pixel_change import PixelChange
from .recipe import Recipe

class Photometric(PixelChange):
    def __new__(cls, recipe: Recipe) -> Self: ...
    @staticmethod
    def wanted(recipe: Recipe) -> bool: ...
