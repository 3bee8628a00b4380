from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .augment.recipe import Recipe
from .render import Renderer

DTYPES: tuple[str, ...]

class RenderPlan:
    recipe: Recipe
    dtype: np.dtype[Any]
    layout: str
    label_width: int
    mean_image: NDArray[np.float32] | None
    def __init__(
        self,
        recipe: Recipe,
        *,
        key: int = 0,
        layout: str = "NCHW",
        dtype: str = "float32",
        label_width: int = 1,
        batch_size: int = 1,
        mean_image: ArrayLike | None = None,
        labels: tuple[NDArray[Any], ...] | None = None,
        max_pixels: int = ...,
        max_scans: int = ...,
        max_scan_pixels: int = ...,
    ) -> None: ...
    def renderer(self) -> Renderer: ...
    def shape(self, batch_size: int) -> tuple[int, ...]: ...
