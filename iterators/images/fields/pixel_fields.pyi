from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..plan import RenderPlan
from ..render import Renderer
from ..sources.source import Source
from .field import FieldPlan, FieldWorker

DEFAULT_LIMITS: dict[str, int]
VALUE_TYPES: tuple[str, ...]

def decode_values(
    data: bytes, limits: Mapping[str, int] = ..., *, exact: bool = True
) -> NDArray[Any]: ...

class ValueReader:
    def __new__(cls, limits: dict[str, int], exact: bool = True) -> Self: ...

ERASING: tuple[str, ...]
FILTERS: tuple[str, ...]
FIRST_FILTER: int
FORM: tuple[str, ...]
METHODS: tuple[str, ...]
OPENCV_METHODS: dict[str, int]

def partners_of(swap: Sequence[tuple[int, int]]) -> NDArray[np.int32]: ...

class ValuePlan(FieldPlan):
    def __init__(
        self,
        name: str,
        spec: Any,
        source: Source,
        view: int,
        size: Sequence[int],
    ) -> None: ...

class ValueWorker(FieldWorker):
    def __new__(cls, plan: FieldPlan, limits: dict[str, int]) -> Self: ...

class ImagePlan(FieldPlan):
    def __init__(
        self, name: str, spec: Any, source: Source, view: int, image: RenderPlan
    ) -> None: ...

class ImageWorker(FieldWorker):
    def __new__(cls, field: FieldPlan, plan: RenderPlan, main: Renderer) -> Self: ...
