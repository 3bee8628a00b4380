from typing_extensions import Buffer
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC: bytes
MAX_RECORD_LENGTH: int

class Run(NamedTuple):
    offsets: NDArray[np.int64]
    end: int
    multipart: int
    payload_bytes: int
    kind: str
    reason: str

def encode(payload: Buffer) -> bytes: ...
def encode_into(buffer: Buffer, position: int, payload: Buffer) -> int: ...
def find_head(data: Buffer, offset: int = 0) -> int: ...
def scan_offsets(
    data: Buffer, path: str | None = None, start: int = 0, record: int = 0
) -> NDArray[np.int64]: ...
def survey(data: Buffer, start: int = 0) -> Run: ...
