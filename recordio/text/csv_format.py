"""Parameters of `recordio.read_csv` and `CSVReader` about the text, validated.

No number is parsed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from recordio.errors import TextFormatError
from recordio.file_limits import check_array_bytes
from recordio.ordered import default_threads
from recordio.text.lines import LineChunks

_DTYPES = {np.dtype(name): name for name in ("float32", "float64", "int32", "int64", "uint8")}


def _count_fields(
    path: str,
    delimiter: str,
    skip_header: int,
    max_line_bytes: int,
    remote_options: Mapping[str, Any] | None,
) -> int:
    """Count the fields of the first line that is not blank."""
    with LineChunks(
        path,
        1 << 16,
        skip_header,
        max_line_bytes=max_line_bytes,
        remote_options=remote_options,
    ) as chunks:
        while (chunk := chunks.read()) is not None:
            blank = b" \t\r".replace(delimiter.encode(), b"")
            for line in bytes(chunk.buffer[: chunk.length]).split(b"\n"):
                line = line.strip(blank)
                if line:
                    return line.count(delimiter.encode()) + (not line.endswith(delimiter.encode()))
    raise TextFormatError(
        "there is no row, and the number of columns is not known without one; pass shape",
        path=str(path),
    )


class CSVFormat:
    """Parameters about the text that `read_csv` and `CSVReader` share."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: int | Sequence[int] | None,
        dtype: DTypeLike,
        delimiter: str,
        skip_header: SupportsIndex,
        threads: SupportsIndex | None,
        max_line_bytes: SupportsIndex,
        max_array_bytes: SupportsIndex | None,
        remote_options: Mapping[str, Any] | None,
        missing: float | None = None,
        exact: bool = False,
    ) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        if self.dtype not in _DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(_DTYPES.values())}, not {dtype}")
        if (
            not isinstance(delimiter, str)
            or len(delimiter) != 1
            or not delimiter.isascii()
            or delimiter.isalnum()
            or delimiter in "+-.\r\n\0"
        ):
            raise ValueError(
                f"delimiter must be one ASCII character that no number contains, not {delimiter!r}"
            )
        self.delimiter = delimiter
        self.exact = bool(exact)
        self.missing: float | None = None if missing is None else _held(missing, self.dtype)
        self.skip_header: int = whole_number("skip_header", skip_header, 0)
        self.threads: int = (
            default_threads() if threads is None else whole_number("threads", threads, 1)
        )
        self.max_line_bytes: int = whole_number("max_line_bytes", max_line_bytes, 1)
        self.max_array_bytes: int | None = None
        if max_array_bytes is not None:
            self.max_array_bytes = whole_number("max_array_bytes", max_array_bytes, 1)
        self.path: str = path if isinstance(path, str) else os.fsdecode(path)
        self.remote_options = remote_options
        if shape is None:
            shape = _count_fields(
                self.path, delimiter, self.skip_header, self.max_line_bytes, remote_options
            )
        lengths = shape if isinstance(shape, Sequence) or np.iterable(shape) else (shape,)
        self.shape: tuple[int, ...] = tuple(
            whole_number("every length in shape", length, 1) for length in lengths
        )
        self.columns: int = int(np.prod(self.shape, dtype=object))
        if self.columns >= 1 << 40:
            raise ValueError(f"shape {self.shape} is too large for a line of text")

    def check(self, rows: int, stored: int, bad: int = 0) -> None:
        """Refuse more rows, and errors of about 1 KB each, than the stored bytes may become."""
        nbytes = rows * self.columns * self.dtype.itemsize + 1024 * bad
        check_array_bytes(nbytes, stored, self.max_array_bytes, TextFormatError, self.path)


def _held(missing: float, dtype: np.dtype[Any]) -> float:
    """Return the value of empty fields, if the array can hold it."""
    value = float(missing)
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        if not value.is_integer() or not limits.min <= value <= min(limits.max, 2**53):
            raise ValueError(f"missing={missing!r}: {dtype} cannot hold it")
    return value


def whole_number(name: str, value: SupportsIndex, smallest: int) -> int:
    """Return a parameter that must be an integer, and not below `smallest`."""
    count = value.__index__()
    if count < smallest:
        raise ValueError(f"{name} must be at least {smallest}, not {count}")
    return count
