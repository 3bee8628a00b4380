from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recordio.errors import TextFormatError

__all__ = ["CSVReader", "read_csv"]

def read_csv(
    path: str | PathLike[str],
    shape: Sequence[int] | int | None = None,
    dtype: DTypeLike = "float32",
    delimiter: str = ",",
    skip_header: int = 0,
    threads: int | None = None,
    bad_rows: dict[int, TextFormatError] | None = None,
    *,
    missing: float | None = None,
    exact: bool = False,
    max_line_bytes: int = ...,
    max_array_bytes: int | None = None,
    remote_options: Mapping[str, Any] | None = None,
) -> NDArray[Any]: ...

class CSVReader:
    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    def __init__(
        self,
        path: str | PathLike[str],
        shape: Sequence[int] | int | None = None,
        dtype: DTypeLike = "float32",
        delimiter: str = ",",
        skip_header: int = 0,
        chunk_bytes: int = ...,
        threads: int | None = None,
        *,
        missing: float | None = None,
        exact: bool = False,
        max_line_bytes: int = ...,
        max_array_bytes: int | None = None,
        remote_options: Mapping[str, Any] | None = None,
    ) -> None: ...
    def __enter__(self) -> CSVReader: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def close(self) -> None: ...
    def __iter__(self) -> Iterator[NDArray[Any]]: ...
    def count(self) -> int: ...
    def rows(
        self, start: int = 0, bad_rows: dict[int, TextFormatError] | None = None
    ) -> Iterator[NDArray[Any]]: ...
