from typing import Any

from ..sources.source import Source
from .field import FieldPlan, FieldWorker

LINES: tuple[str, ...]

class TextPlan(FieldPlan):
    def __init__(self, name: str, spec: Any, source: Source, view: int) -> None: ...

class TextWorker(FieldWorker):
    def __init__(self, lines: int) -> None: ...

class PlacePlan(FieldPlan):
    is_crop: bool
    def __init__(self, name: str, spec: Any, view: int, is_crop: bool) -> None: ...

class PlaceWorker(FieldWorker):
    def __init__(self, is_crop: bool) -> None: ...
