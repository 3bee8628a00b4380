from collections.abc import Iterator
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from recordio.bytes.remote.settings import RemoteSettings

__all__ = [
    "ENTRY",
    "Checksums",
    "Comparison",
    "checksum_entries",
    "checksums_path",
    "compare",
    "format_checksums",
    "is_checksums",
    "read_checksums",
]

ENTRY: np.dtype[np.void]

class Checksums:
    path: str | None
    size: int
    entries: NDArray[np.void]
    def __init__(
        self, entries: NDArray[np.void], size: int, path: str | PathLike[str] | None = None
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...
    def check_size(self, path: str | PathLike[str], size: int) -> None: ...

class Comparison(NamedTuple):
    holds: NDArray[np.bool_]
    multipart: int
    payload_bytes: int

def checksum_entries(data: Buffer, offsets: NDArray[np.int64]) -> NDArray[np.void]: ...
def checksums_path(path: str | PathLike[str]) -> str: ...
def is_checksums(path: str | PathLike[str], settings: RemoteSettings | None = None) -> bool: ...
def read_checksums(path: str | PathLike[str]) -> Checksums: ...
def format_checksums(entries: NDArray[np.void], size: int) -> Iterator[bytes]: ...
def compare(data: Buffer, checksums: Checksums, first: int = 0) -> Comparison: ...
