"""Arrays in the idx format, in which the MNIST sets are stored, plain or gzip.

Not to be confused with the ``.idx`` text that is the index of a record file.  NumPy does the work;
nothing here scales or changes values, and no memory is taken for what a file does not hold.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recordio.bytes.files import open_bytes
from recordio.bytes.storage import AtomicOutput
from recordio.errors import ArrayFileError, TruncatedArrayError
from recordio.file_limits import check_array_bytes

#: Third byte of a file -> element type; numbers are big-endian.
_TYPES: dict[int, np.dtype[Any]] = {
    0x08: np.dtype("u1"),
    0x09: np.dtype("i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}
_CODES = {stored.newbyteorder("="): code for code, stored in _TYPES.items()}
_MAX_DIMENSIONS = 64  # of NumPy
_PIECE = 1 << 22  # bytes at a time


def read_idx_array(
    path: str | os.PathLike[str], *, max_array_bytes: int | None = None
) -> NDArray[Any]:
    """Read an array from an idx file.

    Parameters
    ----------
    path : str or os.PathLike
        The file, local or an fsspec URL; gzip is recognised by its content.
    max_array_bytes : int, optional
        A larger array is an error.  By default 64 times the size of the file as it is stored, at
        least 256 MiB, which only a gzip file can exceed.

    Returns
    -------
    numpy.ndarray
        In the byte order of the machine, writable: uint8, int8, int16, int32, float32 or float64,
        with the shape in the header.

    Raises
    ------
    TruncatedArrayError
        If the file ends before the last element.
    ArrayFileError
        If the file is no idx file, if bytes follow the last element, if gzip data is damaged, or
        if the array is too large.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "labels-idx1-ubyte")
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx_array(path)
    array([7, 2, 1], dtype=uint8)
    """
    file, packed = open_bytes(path)
    with file:
        try:
            stored, shape, start = _read_header(file, path)
            size = math.prod(shape) * stored.itemsize
            if max_array_bytes is not None:
                check_array_bytes(size, start, max_array_bytes, ArrayFileError, str(path))
            if packed:
                data: Any = _read_packed(file, size, max_array_bytes, str(path))
                follows = len(data) == size and file.read(1) != b""
            else:
                there = file.seek(0, os.SEEK_END) - start
                follows = there > size
                data = np.empty(min(there, size) if there >= size else 0, np.uint8)
                file.seek(start)
                have = _read_plain(file, data) if there >= size else there
                if have < size:
                    raise _truncated(path, start, shape, size, have)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            if isinstance(error, ArrayFileError):
                raise
            raise ArrayFileError(
                f"the gzip data is damaged or truncated: {error}", path=str(path)
            ) from error
    if len(data) < size:
        raise _truncated(path, start, shape, size, len(data))
    if follows:
        raise ArrayFileError(
            f"bytes follow the {math.prod(shape)} elements of shape {shape}",
            path=str(path),
            offset=start + size,
        )
    try:
        array = np.frombuffer(data, stored).reshape(shape)
    except ValueError as error:  # an empty array whose other lengths are too large for NumPy
        raise ArrayFileError(f"shape {shape} is too large", path=str(path)) from error
    if not array.dtype.isnative:
        array = array.byteswap(inplace=True).view(stored.newbyteorder("="))
    return array


def _read_header(
    file: BinaryIO, path: str | os.PathLike[str]
) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return element type, shape, and where the elements begin."""
    magic = _read_exactly(file, 4, path, 0)
    stored = _TYPES.get(magic[2])
    if magic[:2] != b"\0\0" or stored is None:
        raise ArrayFileError(
            f"an idx file begins with two zeros and an element type, not with {magic.hex(' ')}",
            path=str(path),
            offset=0,
        )
    dimensions = magic[3]
    if dimensions > _MAX_DIMENSIONS:
        raise ArrayFileError(
            f"{dimensions} dimensions; at most {_MAX_DIMENSIONS} are possible",
            path=str(path),
            offset=3,
        )
    lengths = np.frombuffer(_read_exactly(file, 4 * dimensions, path, 4), ">u4")
    return stored, tuple(lengths.tolist()), 4 + 4 * dimensions


def _read_exactly(file: BinaryIO, count: int, path: str | os.PathLike[str], offset: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = file.read(count - len(data))
        if not piece:
            raise TruncatedArrayError(
                f"the header ends after {offset + len(data)} bytes", path=str(path), offset=offset
            )
        data += piece
    return data


def _read_plain(file: Any, data: NDArray[np.uint8]) -> int:
    """Fill an array of bytes; returns how many there were."""
    view, have = data.data, 0
    while have < len(view):
        got = file.readinto(view[have : have + _PIECE])
        if not got:
            break
        have += got
    return have


def _read_packed(file: Any, size: int, limit: int | None, path: str) -> bytearray:
    """Read at most `size` bytes: memory grows with what comes out, whatever the header promises."""
    data = bytearray()
    while len(data) < size:
        piece = file.read(min(_PIECE, size - len(data)))
        if not piece:
            break
        data += piece
        check_array_bytes(len(data), file.stored_read(), limit, ArrayFileError, path)
    return data


def _truncated(
    path: str | os.PathLike[str], start: int, shape: tuple[int, ...], size: int, have: int
) -> TruncatedArrayError:
    return TruncatedArrayError(
        f"shape {shape} takes {size} bytes behind the header, and there are {have}",
        path=str(path),
        offset=start + have,
    )


def write_idx_array(path: str | os.PathLike[str], array: ArrayLike) -> None:
    """Write an array to an idx file; it appears complete or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        The file, replaced if it exists; compressed by gzip if its name ends with ``.gz``.
    array : array_like
        Of uint8, int8, int16, int32, float32 or float64, in any byte order; at most 64 dimensions
        and a length below 2**32 in each.

    Raises
    ------
    TypeError
        For another element type: convert it yourself, since values may be lost.
    ValueError
        If a length does not fit into the header.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "counts.idx.gz")
    >>> write_idx_array(path, np.array([[1, -2]], np.int16))
    >>> read_idx_array(path)
    array([[ 1, -2]], dtype=int16)
    """
    array = np.asarray(array)
    code = _CODES.get(array.dtype.newbyteorder("=")) if array.dtype.kind in "iuf" else None
    if code is None:
        names = ", ".join(dtype.name for dtype in _CODES)
        raise TypeError(f"an idx file holds {names}; {array.dtype} must be converted first")
    if any(length >= 1 << 32 for length in array.shape):
        raise ValueError(f"a length in {array.shape} does not fit into 32 bits")
    header = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    with AtomicOutput(path) as output, contextlib.ExitStack() as stack:
        file: gzip.GzipFile | AtomicOutput = output
        if os.fsdecode(path).endswith(".gz"):
            # Without time and name, so that the same array always gives the same bytes.
            file = stack.enter_context(gzip.GzipFile("", "wb", 6, fileobj=output.files[0], mtime=0))
        file.write(header)
        flat = array.reshape(-1)
        count = max(1, _PIECE // array.itemsize)
        for first in range(0, flat.size, count):
            file.write(flat[first : first + count].astype(_TYPES[code]).tobytes())
