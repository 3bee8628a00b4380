from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from ..row_source import RowDecoder
from .entry_store import EntryStore

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "DEFAULT_MAX_SCANS",
    "DEFAULT_MAX_SCAN_PIXELS",
    "JpegInfo",
    "JpegRows",
    "available",
    "check_limits",
    "decode",
    "entropy_decoder",
    "header",
    "library",
]

DEFAULT_LIMITS: dict[str, int]
DEFAULT_MAX_PIXELS: int
DEFAULT_MAX_SCANS: int
DEFAULT_MAX_SCAN_PIXELS: int

class JpegInfo(NamedTuple):
    width: int
    height: int
    components: int
    orientation: int
    progressive: bool
    supported: bool

def available() -> bool: ...
def library() -> str: ...
def entropy_decoder() -> str: ...
def check_limits(data: Buffer, **limits: int) -> None: ...
def header(data: Buffer) -> JpegInfo: ...
def decode(
    data: Buffer,
    channels: int = 3,
    region: tuple[int, int, int, int] | None = None,
    denominator: int = 1,
    *,
    entries: EntryStore | None = None,
    record: int = 0,
    **limits: int,
) -> NDArray[np.uint8]: ...

class JpegRows(RowDecoder): ...
