from typing import Any

from ..render import Renderer
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

BOX_FORMATS: tuple[str, ...]

def scan_objects(source: Source, least: int, last: int = -1) -> tuple[int, int]: ...
def check_width(plan: ObjectPlan) -> None: ...

class ObjectPlan(FieldPlan):
    width_of_object: int
    most: int
    def __init__(
        self, name: str, spec: Any, source: Source | None, view: int, width: int, most: int
    ) -> None: ...

class ObjectWorker(FieldWorker):
    def __init__(self, plan: ObjectPlan) -> None: ...

class PointWorker(ObjectWorker): ...
class BoxWorker(ObjectWorker): ...

class OwnBoxWorker(FieldWorker):
    def __init__(self, plan: ObjectPlan, renderer: Renderer) -> None: ...
