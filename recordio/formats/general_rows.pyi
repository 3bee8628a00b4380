from .row_source import RowDecoder

class GeneralRows(RowDecoder): ...

CODECS: tuple[type[RowDecoder], ...]
