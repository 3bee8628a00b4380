from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = ["decode_pixels"]

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
) -> NDArray[np.uint8]: ...
