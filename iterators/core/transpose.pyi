from typing import Any

from numpy.typing import NDArray

def copy_transposed(target: NDArray[Any], source: NDArray[Any]) -> bool: ...
