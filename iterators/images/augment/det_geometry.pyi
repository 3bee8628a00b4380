from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .det_recipe import DetRecipe

RESIZE_MODES: tuple[str, ...]

def drawn_steps(
    recipe: DetRecipe,
    key: int,
    epoch: int,
    record: int,
    width: int,
    height: int,
    label: ArrayLike,
) -> tuple[list[dict[str, Any]], bool, NDArray[np.float32]]: ...
