from collections.abc import Iterator

from typing_extensions import Buffer

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "check_limits",
    "jpeg_orientation",
    "jpeg_size",
    "segments",
    "tiff_orientation",
]

DEFAULT_LIMITS: dict[str, int]
DEFAULT_MAX_PIXELS: int

def check_limits(data: Buffer, **limits: int) -> None: ...
def jpeg_orientation(data: Buffer) -> int: ...
def jpeg_size(data: Buffer) -> tuple[int, int] | None: ...
def segments(data: Buffer) -> Iterator[tuple[int, int, int, bool]]: ...
def tiff_orientation(data: Buffer) -> int: ...
