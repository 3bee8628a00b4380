from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import NDArray

DEFAULT_LIMITS: dict[str, int]
VALUE_TYPES: tuple[str, ...]

def decode_values(
    data: bytes, limits: Mapping[str, int] = ..., *, exact: bool = True
) -> NDArray[Any]: ...

class ValueReader:
    def __new__(cls, limits: dict[str, int], exact: bool = True) -> Self: ...
