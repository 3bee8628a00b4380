from os import PathLike

__all__ = ["LOST", "FileMap", "check_kept", "is_lost", "map_descriptor", "map_file", "part_of"]

LOST: str

class FileMap:
    path: str
    keeper: object

def map_file(path: str | PathLike[str]) -> memoryview: ...
def map_descriptor(file: int, size: int, path: str) -> memoryview: ...
def part_of(view: memoryview, begin: int, end: int) -> memoryview: ...
def is_lost(view: memoryview) -> bool: ...
def check_kept(
    view: memoryview,
    *,
    path: str | None = None,
    offset: int | None = None,
    record: int | None = None,
) -> None: ...
