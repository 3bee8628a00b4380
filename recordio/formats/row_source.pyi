from typing import Self

class RowDecoder:
    def __new__(cls, channels: int, **limits: int) -> Self: ...
