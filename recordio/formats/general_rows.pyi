from .row_source import RowDecoder

__all__ = ["CODECS", "GeneralRows"]

class GeneralRows(RowDecoder):
    error: Exception | None
    def forget(self) -> None: ...

CODECS: tuple[type[RowDecoder], ...]
