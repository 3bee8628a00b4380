from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVELS", "denominator", "resize", "variants"]

LEVELS: dict[str, int]

def variants() -> tuple[str, ...]: ...
def denominator(method: int, source: tuple[int, int], target: tuple[int, int]) -> int: ...
def resize(
    image: NDArray[np.uint8],
    size: tuple[int, int],
    method: int = 1,
    *,
    crop: tuple[int, int, int, int] | None = None,
    window: tuple[int, int, int, int] | None = None,
    denominator: Literal[1, 2, 4, 8] = 1,
    stored: tuple[int, int] | None = None,
    out: NDArray[np.uint8] | None = None,
    variant: str | None = None,
) -> NDArray[np.uint8]: ...
