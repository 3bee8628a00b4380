from typing import Any

from .recipe import Recipe

def drawn(
    recipe: Recipe, key: int, epoch: int, record: int, occurrence: int = 0
) -> dict[str, Any]: ...
