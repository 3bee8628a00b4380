from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recordio.frames.reader import RecordReader
from recordio.header import IRHeader

class Source:
    count: int
    def announce(self, numbers: NDArray[np.int64]) -> int: ...
    def image(self, number: int) -> tuple[IRHeader, bytes]: ...
    def read(self, number: int) -> bytes: ...

class MappedFiles(Source):
    def __init__(
        self,
        paths: Sequence[str],
        views: Sequence[memoryview],
        offsets: NDArray[np.int64],
        starts: NDArray[np.int64],
        numberings: Sequence[Callable[[int], int]] | None = None,
    ) -> None: ...

class RecordFiles(MappedFiles):
    def __init__(
        self,
        readers: Sequence[RecordReader],
        offsets: NDArray[np.int64],
        starts: NDArray[np.int64],
        numberings: Sequence[Callable[[int], int]] | None = None,
        absences: Sequence[Callable[[int], Exception]] | None = None,
    ) -> None: ...

class ImageFiles(Source):
    def __new__(
        cls, paths: Sequence[str], ids: NDArray[np.uint64], labels: NDArray[np.float32]
    ) -> Self: ...

LOST: str

class LabelTable:
    def __new__(
        cls, ids: NDArray[np.uint64], starts: NDArray[np.int64], labels: NDArray[np.float32]
    ) -> Self: ...
    def header(self, number: int) -> IRHeader: ...

class SpanFiles(MappedFiles):
    def __init__(
        self,
        paths: Sequence[str],
        views: Sequence[memoryview],
        offsets: NDArray[np.int64],
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        labels: LabelTable,
        numberings: Sequence[Callable[[int], int]] | None = None,
        faults: Callable[[int], str | Exception] = ...,
    ) -> None: ...

class LibraryRows(Source):
    def __init__(
        self,
        reading: Callable[[int], bytes],
        placing: Callable[[int], dict[str, Any]],
        labels: LabelTable,
    ) -> None: ...

class SpansAndRows(Source):
    def __new__(cls, spans: Source, rows: Source, packed: NDArray[np.bool_]) -> Self: ...

class JoinedSources(Source):
    def __new__(cls, first: Source, second: Source) -> Self: ...

class ImageArrays(Source):
    def __new__(cls, images: NDArray[np.uint8], labels: NDArray[np.float32]) -> Self: ...
