from typing import Any

from .pixel_change import PixelChange
from .recipe import Recipe

class ColourJitter(PixelChange):
    def __init__(self, recipe: Recipe) -> None: ...

def drawn(
    recipe: Recipe, key: int, epoch: int, record: int, occurrence: int = 0
) -> dict[str, Any]: ...
