from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from .row_source import RowDecoder

__all__ = ["CODECS", "GeneralRows", "SpecialRows", "decode_pixels"]

class GeneralRows(RowDecoder):
    error: Exception | None
    def forget(self) -> None: ...

class SpecialRows(GeneralRows): ...

CODECS: tuple[type[RowDecoder], ...]

def decode_pixels(
    data: Buffer,
    channels: int,
    upright: bool,
    limits: dict[str, int],
    region: tuple[int, int, int, int] | None,
    scale: int,
    size: tuple[int, int] | None,
    planar: bool,
    strict: bool,
    out: Any,
    background: tuple[int, int, int] | None = None,
) -> NDArray[np.uint8]: ...
