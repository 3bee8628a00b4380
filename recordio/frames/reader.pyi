from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from recordio.bytes.files import StoredFile
from recordio.errors import IndexFileError
from recordio.frames.mapped import MappedRecords
from recordio.frames.mirrored import RemoteRecords

__all__ = ["RecordReader"]

@disjoint_base
class RecordReader(MappedRecords):
    remote: RemoteRecords | None
    def __init__(
        self,
        path: str | PathLike[str] | StoredFile,
        index: str | PathLike[str] | StoredFile | None = None,
        verify: bool = False,
        selection: bool = False,
        *,
        remote_cache: str | PathLike[str] | None = None,
        remote_cache_size: int | None = None,
        remote_timeout: float | None = None,
        remote_options: Mapping[str, Any] | None = None,
    ) -> None: ...
    def _index_fault(self) -> IndexFileError | None: ...
    def _end_at(self, offset: int) -> int | None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[memoryview]: ...
    @overload
    def __getitem__(self, item: int | np.integer[Any]) -> memoryview: ...
    @overload
    def __getitem__(
        self, item: slice | Sequence[int] | NDArray[np.integer[Any]]
    ) -> list[memoryview]: ...
    @property
    def keys(self) -> NDArray[np.int64]: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...
    def by_key(self, key: SupportsIndex) -> memoryview: ...
    def position_of(self, key: SupportsIndex) -> int: ...
    def offset_of(self, position: int) -> int: ...
    @overload
    def read_many(
        self, positions: Sequence[int] | NDArray[np.integer[Any]], *, copy: Literal[False] = False
    ) -> list[memoryview]: ...
    @overload
    def read_many(
        self, positions: Sequence[int] | NDArray[np.integer[Any]], *, copy: Literal[True]
    ) -> list[bytes]: ...
    @overload
    def read_many(
        self, positions: Sequence[int] | NDArray[np.integer[Any]], *, copy: bool
    ) -> list[memoryview] | list[bytes]: ...
    @overload
    def read_at(
        self, offset: int, record: int | None = None, *, copy: Literal[False] = False
    ) -> tuple[memoryview | None, int]: ...
    @overload
    def read_at(
        self, offset: int, record: int | None = None, *, copy: Literal[True]
    ) -> tuple[bytes | None, int]: ...
    def check_tail(self, offset: int = 0, record: int = 0) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
