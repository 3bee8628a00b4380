"""Arrays as the bytes of ``.npy`` files, and back, without pickling.

This is NumPy's own format, so ``numpy.load(io.BytesIO(content))`` reads what is made here.  Nothing
is taken for granted when reading: lengths are compared before memory is touched.
"""

from __future__ import annotations

import functools
import io
import math
import tokenize
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from recordio.errors import RecordIOError

#: Fields of the elements of a sparse row.
SPARSE_FIELDS = ("index", "value")
#: Errors of NumPy's parser of headers.
HEADER_ERRORS = (
    ValueError,
    SyntaxError,
    TypeError,
    OverflowError,
    RecursionError,
    tokenize.TokenError,
)
LONGEST_HEADER = 10_000  # NumPy's limit for files that are not trusted


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the bytes before the elements of a C-contiguous array, a multiple of 64.

    Arrays of Python objects, which could only be pickled, are refused, and so are names of fields
    that version 1.0 of the format cannot hold.
    """
    if dtype.hasobject:
        raise RecordIOError(f"an array of {dtype} holds Python objects and cannot be stored")
    target = io.BytesIO()
    header = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    try:
        npy_format.write_array_header_1_0(target, header)
    except ValueError as error:  # names of fields that are too long or not Latin
        raise RecordIOError(f"an array of {dtype} cannot be stored: {error}") from None
    return target.getvalue()


def encode_npy(array: np.ndarray) -> bytes:
    """Return an array as the bytes of a ``.npy`` file."""
    return npy_header(array.dtype, array.shape) + array.tobytes()


def decode_npy(content: Any, **location: Any) -> np.ndarray:
    """Return the array in the bytes of a ``.npy`` file, a view; errors name the `location`."""
    view = memoryview(content)
    try:
        end = header_end(view)
        shape, fortran, dtype = parse_header(bytes(view[:end]))
    except HEADER_ERRORS as error:
        raise RecordIOError(f"the .npy header is damaged: {error}", **location) from None
    if dtype.hasobject:
        raise RecordIOError(
            "the array holds pickled Python objects, which are not read", **location
        )
    data = view[end:]
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != data.nbytes:
        raise RecordIOError(
            f"the array of shape {shape} and type {dtype} takes {size} bytes,"
            f" and there are {data.nbytes}",
            **location,
        )
    try:
        if dtype.itemsize == 0:
            return np.empty(shape, dtype)
        return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    except ValueError as error:  # an empty array whose other lengths are too large for NumPy
        raise RecordIOError(f"shape {shape} is too large: {error}", **location) from None


def header_end(view: memoryview) -> int:
    """Return the position at which the elements begin."""
    start = bytes(view[:12])
    if start[:6] != npy_format.MAGIC_PREFIX:
        raise ValueError("it does not begin as a .npy file does")
    version, width = start[6:8], 2 if start[6:7] == b"\1" else 4
    if version not in (b"\1\0", b"\2\0"):
        raise ValueError(f"version {tuple(version)} of the format is unknown")
    length = int.from_bytes(start[8 : 8 + width], "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"it is said to have {length} bytes")
    return 8 + width + length


@functools.lru_cache(maxsize=64)  # the rows of a table all have the same
def parse_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order and element type from the bytes before the elements."""
    file = io.BytesIO(header)
    if npy_format.read_magic(file) == (1, 0):
        return npy_format.read_array_header_1_0(file)
    return npy_format.read_array_header_2_0(file)


def sparse_dtype(value: np.dtype[Any]) -> np.dtype[Any]:
    """Return the element type of a sparse row: an int64 index and a value."""
    index, number = SPARSE_FIELDS
    return np.dtype([(index, "<i8"), (number, value.newbyteorder("<"))])


def is_sparse(array: np.ndarray) -> bool:
    """Return True if an array is a sparse row: one axis of pairs of index and value."""
    return array.ndim == 1 and array.dtype.names == SPARSE_FIELDS
