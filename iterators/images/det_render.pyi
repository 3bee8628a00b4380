from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self

from .augment.det_recipe import DetRecipe
from .plan import RenderPlan
from .render import Renderer

class DetPlan(RenderPlan):
    def __init__(
        self,
        recipe: DetRecipe,
        *,
        raw_width: int = 0,
        key: int = 0,
        layout: str = "NCHW",
        dtype: str = "float32",
        label_width: int = 1,
        batch_size: int = 1,
        mean_image: ArrayLike | None = None,
        labels: tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.float32]] | None = None,
        max_pixels: int = ...,
        max_scans: int = ...,
        max_scan_pixels: int = ...,
    ) -> None: ...
    def renderer(self) -> DetRenderer: ...

class DetRenderer(Renderer):
    plan: Any
    def __new__(cls, plan: DetPlan) -> Self: ...
