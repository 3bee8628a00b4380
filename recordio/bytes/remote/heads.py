"""The first bytes of many records, if the rest is not needed: labels of large images.

They are read by small requests, many at once, and kept in a file beside the mirror, so that they
are asked for once.  For small records there is nothing to gain: most of their blocks hold several.
"""

from __future__ import annotations

import contextlib
import functools
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator

import numpy as np

from recordio.bytes.crc32c import crc32c
from recordio.bytes.remote.block_table import BLOCK
from recordio.bytes.remote.fetching import Job, fetcher
from recordio.bytes.remote.mirror import Mirror, Pin

#: Bytes of a record on average from which on heads are read without the rest.
LARGE_RECORD = 1 << 16
#: Heads that are waited for together, and requests that one thread makes one after the other.
HEADS_AT_ONCE, REQUESTS_OF_A_JOB = 4096, 16
#: Heads no farther apart than this come by one request, of so many bytes at most.
MOST_GAP, MOST_RANGE = 1 << 14, 1 << 18
_CHECKSUM = struct.Struct("<I")


def record_heads(
    mirror: Mirror, begins: np.ndarray, nbytes: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield, some thousands at a time, the number of the first record and the heads as (n, nbytes).

    `begins` are the ascending offsets of the records.  Bytes beyond the end of the object are zero.
    """
    check = zlib.crc32(np.ascontiguousarray(begins, np.int64).data)
    directory = os.path.dirname(mirror.path)
    path = os.path.join(directory, f"heads-{nbytes}-{check:08x}")
    with contextlib.suppress(FileNotFoundError):
        if _is_as_written(path, len(begins) * nbytes):
            yield from _kept(path, len(begins), nbytes)
            return
    descriptor, unfinished = tempfile.mkstemp(".new", "heads-", directory)
    try:
        with open(descriptor, "wb") as file:
            checksum = 0
            for begin in range(0, len(begins), HEADS_AT_ONCE):
                heads = _fetched(mirror, begins[begin : begin + HEADS_AT_ONCE], nbytes)
                data = heads.tobytes()
                _write(file.fileno(), data, mirror)
                checksum = crc32c(data, checksum)
                yield begin, heads
            _write(file.fileno(), _CHECKSUM.pack(checksum), mirror)
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(unfinished)


def _is_as_written(path: str, nbytes: int) -> bool:
    """Tell whether a file holds so many bytes of heads, and behind them their CRC-32C."""
    checksum = 0
    with open(path, "rb") as file:
        while nbytes and (data := file.read(min(nbytes, BLOCK))):
            checksum, nbytes = crc32c(data, checksum), nbytes - len(data)
        return not nbytes and file.read() == _CHECKSUM.pack(checksum)


def _kept(path: str, count: int, nbytes: int) -> Iterator[tuple[int, np.ndarray]]:
    with open(path, "rb") as file:
        for begin in range(0, count, HEADS_AT_ONCE):
            data = file.read(nbytes * min(HEADS_AT_ONCE, count - begin))
            yield begin, np.frombuffer(data, np.uint8).reshape(-1, nbytes)


def _write(descriptor: int, data: bytes, mirror: Mirror) -> None:
    left = memoryview(data)
    try:
        while len(left):
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        raise mirror.cannot_be_written(error, 0) from error


def _fetched(mirror: Mirror, begins: np.ndarray, nbytes: int) -> np.ndarray:
    """Fetch the heads of some records, in parallel."""
    heads = np.zeros((len(begins), nbytes), np.uint8)
    ends = np.minimum(begins + nbytes, mirror.size)
    there = np.zeros(len(begins), bool)
    if mirror.resident:
        first, last = begins // BLOCK, (ends - 1) // BLOCK
        missing = mirror.missing(np.unique([first, last]))
        there = ~(np.isin(first, missing) | np.isin(last, missing))
    for i in np.flatnonzero(there).tolist():
        _put(heads[i], mirror.view[begins[i] : ends[i]])
    missing_ones = np.flatnonzero(~there)
    runs = _runs(begins[missing_ones], ends[missing_ones])
    jobs = [
        Job(0, 0, sum(stop - start for _, _, start, stop in group),
            functools.partial(_read, mirror, group, heads, begins, ends, missing_ones))
        for group in (runs[i : i + REQUESTS_OF_A_JOB]
                      for i in range(0, len(runs), REQUESTS_OF_A_JOB))
    ]  # fmt: skip
    fetcher().submit(jobs)
    with Pin(mirror, np.zeros(0, np.int64), jobs):
        return heads


def _runs(begins: np.ndarray, ends: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Join heads ``[first, last)`` that come by one request, each with its range of bytes."""
    runs: list[tuple[int, int, int, int]] = []
    for i, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        if runs:
            first, _, start, stop = runs[-1]
            if begin - stop <= MOST_GAP and end - start <= MOST_RANGE:
                runs[-1] = first, i + 1, start, max(stop, end)
                continue
        runs.append((i, i + 1, begin, end))
    return runs


def _read(
    mirror: Mirror,
    group: list[tuple[int, int, int, int]],
    heads: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    missing_ones: np.ndarray,
    job: Job,
) -> None:
    """Carry out the requests of a job."""
    for first, last, start, stop in group:
        data = mirror.read_apart(start, stop, job)
        for i in missing_ones[first:last].tolist():
            _put(heads[i], data[begins[i] - start : ends[i] - start])


def _put(head: np.ndarray, data: memoryview) -> None:
    head[: len(data)] = np.frombuffer(data, np.uint8)
