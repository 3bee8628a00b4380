from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .augmenter import Augmenter

def drawn_colours(
    recipe: Augmenter, key: int, epoch: int, record: int, occurrence: int = 0
) -> dict[str, Any]: ...
def composed(
    factor: Sequence[float],
    order: Sequence[int],
    hue: float,
    noise: Sequence[float],
    grey: bool,
    average: Sequence[float],
    mean: Sequence[float] = (0, 0, 0),
    std: Sequence[float] = (1, 1, 1),
) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
