from typing import Self

from typing_extensions import Buffer

from ..codec_rows import CodecRows

__all__ = ["PngRows", "PngValues", "check_png", "png_header"]

def png_header(data: Buffer) -> tuple[int, int, int, int, int, bool, bool] | None: ...
def check_png(data: Buffer) -> bool: ...

class PngRows(CodecRows):
    def __new__(
        cls, channels: int = 1, *, deep: bool = False, vectors: bool = True, **limits: int
    ) -> Self: ...

class PngValues(PngRows): ...
