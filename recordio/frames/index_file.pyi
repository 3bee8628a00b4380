from collections.abc import Iterator
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

__all__ = ["KeyLookup", "build_index", "format_index", "read_index", "write_index"]

@disjoint_base
class KeyLookup:
    def __init__(self, keys: NDArray[np.int64]) -> None: ...
    def position_of(self, key: int) -> int: ...

def build_index(
    path: str | PathLike[str],
    index: str | PathLike[str] | None = None,
    keys: Literal["position", "id"] = "position",
) -> int: ...
def format_index(keys: ArrayLike, offsets: ArrayLike) -> Iterator[bytes]: ...
def read_index(path: str | PathLike[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def write_index(path: str | PathLike[str], keys: ArrayLike, offsets: ArrayLike) -> None: ...
