from typing import Any

from numpy.typing import NDArray

class LabelReader: ...

class RowLabels(LabelReader):
    def __init__(self, labels: tuple[NDArray[Any], ...] | None, width: int) -> None: ...
