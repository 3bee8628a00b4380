from typing import Any

from numpy.typing import NDArray
from typing_extensions import Buffer

from .row_source import RowDecoder

__all__ = ["CodecRows", "decode"]

class CodecRows(RowDecoder): ...

def decode(
    rows: CodecRows,
    data: Buffer,
    region: tuple[int, int, int, int] | None = None,
    denominator: int = 1,
) -> NDArray[Any] | None: ...
