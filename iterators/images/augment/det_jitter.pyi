from .det_recipe import DetRecipe
from .pixel_change import PixelChange

class DetColourJitter(PixelChange):
    def __init__(self, recipe: DetRecipe) -> None: ...

def drawn(recipe: DetRecipe, key: int, epoch: int, record: int) -> dict[str, float]: ...
