from typing import Any

import numpy as np

from recordio.errors import TextFormatError
from recordio.text.lines import TextChunk

__all__ = ["most_rows", "parse_chunk"]

def most_rows(
    chunk: TextChunk, columns: int, delimiter: int, skipping: bool, filling: bool
) -> int: ...
def parse_chunk(
    chunk: TextChunk,
    columns: int,
    delimiter: int,
    array: np.ndarray[Any, Any],
    row: int,
    bad: list[tuple[int, TextFormatError]] | None,
    filled: float | None = None,
    exact: bool = False,
) -> int: ...
