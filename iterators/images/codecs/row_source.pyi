from typing_extensions import Self

class RowDecoder:
    def __new__(cls, channels: int, **limits: int) -> Self: ...
