from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = ["Run", "find_head", "scan_offsets", "survey"]

class Run(NamedTuple):
    offsets: NDArray[np.int64]
    end: int
    multipart: int
    payload_bytes: int
    unescaped: NDArray[np.int64]
    kind: str
    reason: str

def find_head(data: Buffer, offset: int = 0) -> int: ...
def scan_offsets(
    data: Buffer, path: str | None = None, start: int = 0, record: int = 0
) -> NDArray[np.int64]: ...
def survey(data: Buffer, start: int = 0, payloads: bool = True) -> Run: ...
