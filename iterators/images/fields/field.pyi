from typing import Any

import numpy as np

from ..image_steps import StepRunner
from ..sources.source import Source

class PathFinder:
    def __init__(self, runner: StepRunner) -> None: ...

class Tracer: ...
class FieldWorker: ...

class FieldPlan:
    name: str
    spec: Any
    view: int
    source: Source | None
    is_array: bool
    dtype: np.dtype[Any]
    layout: str
    height: int
    width: int
    padding: Any
    def __init__(self, name: str, spec: Any, source: Source | None, view: int = 0) -> None: ...
    def worker(self, renderer: Any) -> FieldWorker: ...
    def shape(self, slots: int, size: tuple[int, int] | None = None) -> tuple[int, ...]: ...
    def value(self, content: bytes) -> Any: ...
