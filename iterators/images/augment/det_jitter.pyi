from .det_recipe import DetRecipe
from .pixel_change import PixelChange

class DetColourJitter(PixelChange):
    def __init__(self, recipe: DetRecipe) -> None: ...
