from typing import NamedTuple

from typing_extensions import Buffer

from ..codec_rows import CodecRows

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "DEFAULT_MAX_SCANS",
    "DEFAULT_MAX_SCAN_PIXELS",
    "JpegInfo",
    "JpegRows",
    "available",
    "check_limits",
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

class JpegRows(CodecRows):
    @property
    def outcome(self) -> tuple[int, int]: ...
