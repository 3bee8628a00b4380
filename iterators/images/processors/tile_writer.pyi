from typing import Any

import numpy as np

STEP_COLUMNS: int

class Scratch: ...

def write_picture(
    pixels: np.ndarray,
    source: tuple[int, int, int],
    steps: np.ndarray,
    cuts: np.ndarray,
    tile: tuple[int, int],
    method: int,
    form: tuple[int, int, int, bool],
    item: tuple[int, ...],
    tables: np.ndarray,
    scale: np.ndarray,
    out: np.ndarray,
    begin: int,
    room: int,
    scratch: Scratch,
    fill: tuple[int, int, int] = ...,
) -> Any: ...
