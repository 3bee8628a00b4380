from collections.abc import Mapping
from os import PathLike
from typing import Any

from numpy.typing import DTypeLike, NDArray

from recordio.errors import TextFormatError

__all__ = ["read_libsvm"]

def read_libsvm(
    path: str | PathLike[str],
    num_features: int | None = None,
    dtype: DTypeLike = "float32",
    zero_based: bool = True,
    threads: int | None = None,
    bad_rows: dict[int, TextFormatError] | None = None,
    *,
    skip_header: int = 0,
    label_weights: bool = False,
    max_line_bytes: int = ...,
    max_array_bytes: int | None = None,
    dropped: dict[str, int] | None = None,
    remote_options: Mapping[str, Any] | None = None,
) -> tuple[Any, NDArray[Any]]: ...
