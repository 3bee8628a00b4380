from typing import final

from recordio.frames.reader import RecordReader

__all__ = ["RecordIterator"]

@final
class RecordIterator:
    def __new__(cls, reader: RecordReader) -> RecordIterator: ...
    def __iter__(self) -> RecordIterator: ...
    def __next__(self) -> memoryview: ...
