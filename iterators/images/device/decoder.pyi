from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DRIVER",
    "SYMBOLS",
    "BatchDecoder",
    "BlockLayout",
    "DeviceDecodeError",
    "HeaderTest",
    "lay_out",
]

SYMBOLS: dict[str, bool]
DRIVER: tuple[str, ...]

class DeviceDecodeError(RuntimeError):
    function: str
    status: int
    def __init__(self, function: str, status: int) -> None: ...

class BlockLayout:
    tail: slice
    rows: int
    pixels: int
    most: list[int]
    jpegs: int
    made: int
    def __init__(
        self, tail: slice, rows: int, pixels: int, most: list[int], jpegs: int, made: int
    ) -> None: ...

def lay_out(block: NDArray[np.uint8], channels: int, crops: bool) -> BlockLayout: ...

class BatchDecoder:
    hardware: bool
    scales: bool
    smooth: bool
    images_per_call: int
    def __init__(
        self,
        functions: Mapping[str, int],
        driver: Mapping[str, int],
        context: int,
        streams: Sequence[int],
        *,
        channels: int = 3,
        images_per_call: int = 0,
    ) -> None: ...
    def close(self) -> None: ...
    def decode(self, block: NDArray[np.uint8], pixels: int) -> list[int]: ...

class HeaderTest:
    def __new__(cls, of: BatchDecoder) -> Self: ...
