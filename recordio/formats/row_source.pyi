from typing import Self

class RowDecoder:
    def __new__(cls, channels: int, *, upright: bool = True, **limits: int) -> Self: ...
