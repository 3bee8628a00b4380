from .det_recipe import DetRecipe
from .pixel_change import PixelChange
from .recipe import Recipe

class ColourJitter(PixelChange):
    def __init__(self, recipe: Recipe) -> None: ...

class DetColourJitter(PixelChange):
    def __init__(self, recipe: DetRecipe) -> None: ...
