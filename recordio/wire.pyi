from collections.abc import Iterator
from typing import Any

from typing_extensions import Buffer

__all__ = ["REASONS", "fields"]

REASONS: dict[int, str]

def fields(data: Buffer) -> Iterator[tuple[int, int, Any]]: ...
