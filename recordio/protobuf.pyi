import os
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["read_protobuf", "write_protobuf"]

REASONS: dict[int, str]
DTYPES: dict[int, np.dtype]
KINDS: dict[np.dtype, int]
CHUNK: int
MAGIC: bytes
LONGEST: int

def named(kind: int) -> str: ...
def read_protobuf(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    max_array_bytes: int | None = None,
    remote_options: Mapping[str, Any] | None = None,
) -> tuple[Any, np.ndarray | None]: ...
def write_protobuf(path: str | os.PathLike[str], features: Any, labels: Any = None) -> None: ...
