from os import PathLike

class RowPlaces:
    count: int
    def __init__(
        self,
        path: str | PathLike[str],
        skip_header: int = 0,
        delimiter: str = ",",
        chunk_bytes: int = ...,
    ) -> None: ...
    def before(self, row: int) -> tuple[int, int, int, int]: ...

def count_rows(path: str | PathLike[str], skip_header: int = 0, delimiter: str = ",") -> int: ...
