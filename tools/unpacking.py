"""Compressed files, unpacked beside an output, since containers are read in place.

Pieces of zeros become holes of the unpacked file, and no piece is larger than asked for: a small
file that unpacks to very much fills neither the memory nor all of the disk.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, cast

from recordio import RecordIOError
from recordio.bytes.files import StoredFile, open_bytes
from recordio.bytes.remote.settings import is_url
from recordio.containers.tfrecord import masked_crc32c

from .console import progress_bar
from .outputs import temporary_folder

#: Most memory for an xz file; the highest level takes 64 MiB.
MOST_LZMA_MEMORY = 1 << 28
PIECE = 1 << 16
ZEROS = bytes(PIECE)
UNPACKING_ERRORS = (EOFError, lzma.LZMAError, zlib.error)
#: Bytes on the disk that are left free, and bytes between two looks.
LEFT_FREE, LOOK = 1 << 28, 1 << 26
GZIP = b"\x1f\x8b"
#: Where a tar file says so, and the head of a TFRecord.
USTAR, HEAD = slice(257, 262), struct.Struct("<8sI")


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
            piece, self._rest = self._rest, b""
            data = self._engine.decompress(piece, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        try:
            self._below.close()
        finally:
            super().close()


@contextlib.contextmanager
def unpacked_beside(
    files: Sequence[StoredFile],
    prefix: str,
    progress: bool | None = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[list[StoredFile], dict[str, str]]]:
    """Give the files, those that are compressed as copies beside the output `prefix`.

    The copies are removed when the block ends, also by a later run where this one was killed; with
    them come the names that they had.
    """
    packed = [file for file in files if is_compressed(file)]
    if not packed:
        yield list(files), {}
        return
    if is_url(prefix):  # nothing but whole objects can be there
        prefix = os.path.join(tempfile.gettempdir(), "recordio")
    names: dict[str, str] = {}
    with temporary_folder(prefix) as folder:
        plain_files = []
        for number, file in enumerate(files):
            if file not in packed:
                plain_files.append(file)
                continue
            target = os.path.join(folder, f"{number:06d}")
            description = f"unpacking {os.path.basename(file.name)}"
            with progress_bar(None, description, "bytes", progress) as advance:
                _unpack(file, target, advance, cancelled)
            names[target] = file.name
            plain_files.append(StoredFile(target))
        yield plain_files, names


def is_compressed(file: StoredFile) -> bool:
    """Tell whether a file begins as compressed ones do, and not as a tar or a TFRecord."""
    start = file.first_bytes(USTAR.stop)
    if not start.startswith((GZIP, *DECOMPRESSORS)) or start[USTAR] == b"ustar":
        return False
    length, checksum = HEAD.unpack_from(start.ljust(HEAD.size, b"\0"))
    return bool(masked_crc32c(length) != checksum)


def _unpack(
    file: StoredFile,
    target: str,
    advance: Callable[[int], object],
    cancelled: Callable[[], bool],
) -> None:
    """Unpack a file; one that is damaged, or too large for the disk, is an error."""
    done = looked = 0
    try:
        with open_unpacked(file.name) as source, open(target, "wb") as output:
            while piece := source.read(PIECE):
                if cancelled():
                    raise KeyboardInterrupt
                if done >= looked:
                    looked = done + LOOK
                    if shutil.disk_usage(target).free < LEFT_FREE + LOOK:
                        raise RecordIOError(
                            f"{done} bytes of it are unpacked, and the disk of "
                            f"{os.path.dirname(os.path.dirname(target))} is full: unpack it "
                            "elsewhere, and give what it holds",
                            path=file.name,
                        )
                if piece == ZEROS[: len(piece)]:
                    output.seek(len(piece), os.SEEK_CUR)
                else:
                    output.write(piece)
                done += len(piece)
                advance(len(piece))
            output.truncate(done)
    except (gzip.BadGzipFile, *UNPACKING_ERRORS) as error:
        raise _damaged(file, error) from None
    except OSError as error:
        if error.errno is None:  # damaged compression
            raise _damaged(file, error) from None
        raise


def _damaged(file: StoredFile, error: Exception) -> RecordIOError:
    return RecordIOError(f"its compressed data are damaged or truncated: {error}", path=file.name)
