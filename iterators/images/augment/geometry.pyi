from .recipe import Recipe

class GeometryDrawer: ...

class RecipeGeometry(GeometryDrawer):
    def __init__(self, recipe: Recipe) -> None: ...

def drawn_steps(
    recipe: Recipe, key: int, epoch: int, record: int, width: int, height: int, occurrence: int = 0
) -> tuple[list[dict[str, int]], bool]: ...
