"""Compressed archives as streams that never hold more than was requested.

``tarfile`` unpacks as much as a piece of the compressed file gives, which can be gigabytes, and
reads headers of any length.
"""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from recordio import RecordIOError
from recordio.bytes.files import open_bytes

__all__ = ["UNPACKING_ERRORS", "BoundedReader", "open_unpacked"]

#: Most memory for an xz file; the highest level takes 64 MiB.
MOST_LZMA_MEMORY = 1 << 28
PIECE = 1 << 16
UNPACKING_ERRORS = (EOFError, lzma.LZMAError)


def _zstd() -> Any:
    try:
        from compression.zstd import ZstdDecompressor  # type: ignore[import-not-found]
    except ImportError as error:
        raise RecordIOError("reading zstd needs Python 3.14") from error
    return ZstdDecompressor()


#: First bytes of a file -> what unpacks it; gzip is `open_bytes`'s.
DECOMPRESSORS: dict[bytes, Callable[[], Any]] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lambda: lzma.LZMADecompressor(memlimit=MOST_LZMA_MEMORY),
    b"\x5d\0\0": lambda: lzma.LZMADecompressor(memlimit=MOST_LZMA_MEMORY),
    b"\x28\xb5\x2f\xfd": _zstd,
}


def open_unpacked(path: str) -> BinaryIO:
    """Open a file that may be compressed by gzip, bzip2, xz or, from Python 3.14 on, zstd."""
    file, packed = open_bytes(path)
    if packed:
        return file
    try:
        start = file.read(6)
        file.seek(0)
        for magic, make in DECOMPRESSORS.items():
            if start.startswith(magic):
                return cast(BinaryIO, io.BufferedReader(_Unpacked(file, make), PIECE))
    except BaseException:
        file.close()
        raise
    return file


class _Unpacked(io.RawIOBase):
    """Content of a file, unpacked as it is read; closes that file, too."""

    def __init__(self, below: BinaryIO, make: Callable[[], Any]) -> None:
        self._below = below
        self._make = make
        self._engine = make()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            if self._engine.eof:
                self._rest = self._engine.unused_data or self._below.read(PIECE)
                if not self._rest.strip(b"\0"):
                    return 0
                self._engine = self._make()
            elif self._engine.needs_input and not self._rest:
                self._rest = self._below.read(PIECE)
                if not self._rest:
                    raise EOFError("the compressed data ends too early")
            given, self._rest = self._rest, b""
            data = self._engine.decompress(given, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        try:
            self._below.close()
        finally:
            super().close()


class BoundedReader:
    """Reader of a stream up to a position that moves on.

    `allowed` bytes may be read for now; for more, the error that `refuse` returns is raised.
    """

    def __init__(self, file: Any, allowed: int, refuse: Callable[[], Exception]) -> None:
        self._file = file
        self._read = 0
        self._ended = False
        self._refuse = refuse
        self.allowed = allowed

    def read(self, count: int) -> bytes:
        """Read some bytes; none at the end, and an EOFError after that.

        tarfile passes over a file by reading until its end, which a header can put anywhere.
        """
        if self._read + count > self.allowed:
            raise self._refuse()
        data = self._file.read(count)
        if self._ended and not data:
            raise EOFError("it ends inside a file")
        self._ended = not data
        self._read += len(data)
        return data

    def close(self) -> None:
        """Do nothing: the stream belongs to somebody else."""
