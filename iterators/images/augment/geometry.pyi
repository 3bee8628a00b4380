from .recipe import Recipe

CROP_POSITIONS: tuple[str, ...]
FILTERS: tuple[str, ...]
FIRST_FILTER: int
PADDING_MODES: tuple[str, ...]
RESIZE_TO: dict[str, int]

class GeometryDrawer: ...

class RecipeGeometry(GeometryDrawer):
    def __init__(self, recipe: Recipe) -> None: ...

def drawn_steps(
    recipe: Recipe, key: int, epoch: int, record: int, width: int, height: int, occurrence: int = 0
) -> tuple[list[dict[str, int]], bool]: ...
