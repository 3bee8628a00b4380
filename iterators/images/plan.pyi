from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recordio.packs.labels import LabelChange

from .augment.geometry import GeometryDrawer
from .augment.pixel_changes import PixelChange
from .augment.recipe import Recipe

DEFAULT_LIMITS: dict[str, int]

class RenderPlan:
    recipe: Recipe
    dtype: np.dtype[Any]
    layout: str
    label_width: int
    patch: int
    mean_image: NDArray[np.float32] | None
    labels: tuple[NDArray[Any], ...] | None
    change: LabelChange | None
    limits: dict[str, int]
    views: tuple[RenderPlan, ...]
    cuts: tuple[str, ...]
    def __init__(
        self,
        recipe: Recipe,
        *,
        key: int = 0,
        layout: str = "NCHW",
        dtype: str = "float32",
        label_width: int = 1,
        mean_image: ArrayLike | None = None,
        largest: tuple[int, int] | None = None,
        labels: tuple[NDArray[Any], ...] | None = None,
        change: LabelChange | None = None,
        views: Sequence[RenderPlan] = (),
        **limits: int,
    ) -> None: ...
    renderer_class: Any
    def find_cuts(self) -> tuple[str, ...]: ...
    # The last is a RowWriter, which is made of a plan, or None.
    def parts(self) -> tuple[LabelReader, GeometryDrawer, tuple[PixelChange, ...], Any]: ...
    def changes(self) -> tuple[PixelChange, ...]: ...
    def shape(self, samples: int, size: tuple[int, int] | None = None) -> tuple[int, ...]: ...

class LabelReader:
    def __init__(self, change: LabelChange | None = None) -> None: ...

class SeveralLabels(LabelReader):
    def __init__(self, multi_hot: bool, width: int, change: LabelChange | None = None) -> None: ...

class RowLabels(LabelReader):
    def __init__(
        self,
        labels: tuple[NDArray[Any], ...] | None,
        width: int,
        change: LabelChange | None = None,
    ) -> None: ...
