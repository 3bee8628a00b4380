import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from .row_source import RowDecoder

__all__ = ["HEADER", "PNMHeader", "RawRows", "decode", "decode_pnm", "encode", "header"]

HEADER: re.Pattern[bytes]

class PNMHeader(NamedTuple):
    width: int
    height: int
    channels: int
    start: int

class RawRows(RowDecoder): ...

def header(data: Buffer, *, max_pixels: int = ...) -> PNMHeader | None: ...
def decode(data: Buffer, channels: int, *, max_pixels: int = ...) -> NDArray[np.uint8] | None: ...
def decode_pnm(
    view: memoryview, channels: int, *, max_pixels: int = ...
) -> NDArray[Any] | None: ...
def encode(pixels: NDArray[np.uint8]) -> bytes: ...
