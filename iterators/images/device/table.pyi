from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..plan import RenderPlan
from ..render import Renderer
from .decoder import BatchDecoder

__all__ = [
    "BATCH_TYPES",
    "TablePlan",
    "TableRenderer",
    "batch_form",
    "cramped_slots",
    "drop_rows",
    "empty_block",
    "grown",
    "run_kernel",
]

BATCH_TYPES: dict[str, int]

class TablePlan(RenderPlan):
    decoder: BatchDecoder
    room: int
    def __init__(self, of: RenderPlan, decoder: BatchDecoder, batch_size: int) -> None: ...

class TableRenderer(Renderer):
    def __init__(self, *args: Any, **more: Any) -> None: ...
    def fill(
        self,
        record: bytes | bytearray | memoryview,
        epoch: int,
        number: int,
        draw: int,
        block: NDArray[np.uint8],
        place: int,
    ) -> None: ...

def empty_block(
    room: int, slots: int, allocate: Callable[[int], NDArray[np.uint8]]
) -> NDArray[np.uint8]: ...
def drop_rows(block: NDArray[np.uint8], slots: Iterable[int]) -> None: ...
def cramped_slots(block: NDArray[np.uint8]) -> list[int]: ...
def grown(
    block: NDArray[np.uint8], allocate: Callable[[int], NDArray[np.uint8]]
) -> tuple[NDArray[np.uint8], int]: ...
def batch_form(
    plan: RenderPlan,
    batch_size: int,
    dtype: str = "uint8",
    mean: Iterable[float] = (),
    factor: Iterable[float] = (),
) -> bytes: ...
def run_kernel(
    tail: int, rows: int, pixels: int, out: int, form: bytes, slots: int, most: Sequence[int]
) -> None: ...
