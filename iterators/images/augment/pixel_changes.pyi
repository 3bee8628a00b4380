from typing import Self

from .det_recipe import DetRecipe
from .recipe import Recipe

class PixelChange: ...

class ColourJitter(PixelChange):
    def __init__(self, recipe: Recipe) -> None: ...

class DetColourJitter(PixelChange):
    def __init__(self, recipe: DetRecipe) -> None: ...

class FaceChange(PixelChange):
    def __new__(cls, recipe: Recipe) -> Self: ...
    @staticmethod
    def is_needed(recipe: Recipe) -> bool: ...

ERASING_VALUES: tuple[str, ...]
IMAGENET: tuple[tuple[float, ...], ...]
IMAGENET_GREY: tuple[tuple[float, ...], ...]
MOST_RECTANGLES: int

class Eraser:
    def __new__(cls, recipe: Recipe, most_width: int) -> Self: ...
