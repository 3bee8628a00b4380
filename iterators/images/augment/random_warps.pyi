from typing import Any

from .recipe import Recipe

METHODS: tuple[str, ...]

def drawn_warps(
    recipe: Recipe, key: int, epoch: int, record: int, width: int, height: int, occurrence: int = 0
) -> dict[str, Any]: ...
