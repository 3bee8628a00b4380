from typing import Self

from ..codec_rows import CodecRows

__all__ = ["PngRows", "PngValues", "decoder"]

def decoder() -> str: ...

class PngRows(CodecRows):
    def __new__(
        cls, channels: int = 1, *, deep: bool = False, vectors: bool = True, **limits: int
    ) -> Self: ...

class PngValues(PngRows): ...
