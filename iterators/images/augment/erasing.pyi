from typing import Self

from .recipe import Recipe

ERASING_VALUES: tuple[str, ...]
IMAGENET: tuple[tuple[float, ...], ...]
IMAGENET_GREY: tuple[tuple[float, ...], ...]
MOST_RECTANGLES: int

class Eraser:
    def __new__(cls, recipe: Recipe, most_width: int) -> Self: ...
