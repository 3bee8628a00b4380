from os import PathLike
from typing import Any

from numpy.typing import DTypeLike, NDArray

def read_libsvm(
    path: str | PathLike[str],
    num_features: int | None = None,
    dtype: DTypeLike = "float32",
    zero_based: bool = True,
    threads: int | None = None,
) -> tuple[Any, NDArray[Any]]: ...
