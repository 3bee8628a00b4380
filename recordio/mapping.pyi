from os import PathLike

__all__ = ["map_file"]

def map_file(path: str | PathLike[str]) -> memoryview: ...
