from collections.abc import Mapping
from os import PathLike
from typing import Any, Self

from recordio.errors import TextFormatError

__all__ = [
    "MAX_BAD_ROWS",
    "MAX_LINE_BYTES",
    "LineChunks",
    "TextChunk",
    "note_bad_row",
]

MAX_BAD_ROWS: int
MAX_LINE_BYTES: int

def note_bad_row(
    bad: list[tuple[int, TextFormatError]] | None, row: int, error: TextFormatError
) -> None: ...

class TextChunk:
    path: str
    file_number: int
    offset: int
    first_line: int
    lines: int
    length: int
    buffer: bytearray
    target: Any

class LineChunks:
    sizes: list[int]
    stored_read: int
    def __init__(
        self,
        path: str | PathLike[str],
        chunk_bytes: int = ...,
        skip_header: int = ...,
        first_bytes: int | None = ...,
        max_line_bytes: int = ...,
        remote_options: Mapping[str, Any] | None = ...,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def close(self) -> None: ...
    def go_to(self, file_number: int, offset: int, line: int) -> None: ...
    def read(self, buffer: bytearray | None = ...) -> TextChunk | None: ...
    def stored_bytes(self) -> int: ...
