from .row_source import RowDecoder

__all__ = ["CODECS", "GeneralRows"]

class GeneralRows(RowDecoder): ...

CODECS: tuple[type[RowDecoder], ...]
