from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAMES: tuple[str, ...]

def moved(
    label: ArrayLike,
    operations: Sequence[tuple[Any, ...]],
    width: int,
    height: int,
    *,
    mirror: bool = False,
    overlap: float | None = None,
) -> NDArray[np.float32]: ...
