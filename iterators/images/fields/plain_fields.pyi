from typing import Any

from ..sources.source import Source
from .field import FieldPlan, FieldWorker

LINES: tuple[str, ...]
PLACES: dict[str, tuple[str, int]]

class TextPlan(FieldPlan):
    def __init__(self, name: str, spec: Any, source: Source, view: int) -> None: ...

class TextWorker(FieldWorker):
    def __init__(self, lines: int) -> None: ...

class PlacePlan(FieldPlan):
    values: int
    def __init__(self, name: str, spec: Any, view: int) -> None: ...

class PlaceWorker(FieldWorker):
    def __init__(self, place: str) -> None: ...
