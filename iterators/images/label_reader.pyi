from typing import Any

from numpy.typing import NDArray

from recordio.packs.labels import LabelChange

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
