from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from recordio.frames.checksums import Checksums

__all__ = ["MappedRecords", "RecordIterator"]

@disjoint_base
class MappedRecords:
    path: str
    index_path: str | None
    closed: bool
    checksums: Checksums | None
    def _take_many(self, positions: NDArray[np.int64], copy: bool) -> list[Any]: ...

@final
class RecordIterator:
    def __new__(cls, reader: MappedRecords) -> RecordIterator: ...
    def __iter__(self) -> RecordIterator: ...
    def __next__(self) -> memoryview: ...
