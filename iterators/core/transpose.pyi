from typing import Any

from numpy.typing import NDArray

__all__ = ["copy_transposed"]

def copy_transposed(target: NDArray[Any], source: NDArray[Any]) -> bool: ...
