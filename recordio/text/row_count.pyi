from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowPositions", "count_rows", "row_starts"]

class RowPositions:
    count: int
    def __init__(
        self,
        path: str | PathLike[str],
        skip_header: int = 0,
        delimiter: str = ",",
        chunk_bytes: int = ...,
        max_line_bytes: int = ...,
        remote_options: Mapping[str, Any] | None = ...,
    ) -> None: ...
    def before(self, row: int) -> tuple[int, int, int, int]: ...

def row_starts(
    path: str | PathLike[str],
    comment: str = "#",
    max_line_bytes: int = ...,
    remote_options: Mapping[str, Any] | None = ...,
    skip_header: int = ...,
) -> tuple[list[int], NDArray[np.int64]]: ...
def count_rows(
    path: str | PathLike[str],
    skip_header: int = 0,
    delimiter: str = ",",
    max_line_bytes: int = ...,
) -> int: ...
