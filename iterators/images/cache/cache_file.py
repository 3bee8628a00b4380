"""The file of an image cache: making, checking, mapping it.

Defines the layout of the file and checks one that exists.  Images are put into it and
read from it by `image_cache`; this module never looks at them.

The file, in the byte order of the machine::

    0    16 bytes   "iterators-cache" and a line end
    16   uint64     bytes of the data that are given away
    24   uint32     length of the description, uint32: its CRC-32
    32   JSON       the description: sizes, offsets, what the images depend on
    ...  uint64 * n the table, one word for every record, at a multiple of 4096
    ...             the data, at a multiple of 4096, up to the end of the file

It is made with its final length, but takes room on the disk only for what is written.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import struct
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordio.bytes.mapping import map_descriptor
from recordio.bytes.storage import TEMPORARY_SUFFIX
from recordio.errors import CacheFileError

#: Changes with the layout of the file (also with `_offsets`, which a file must agree with), and
#: when the same settings give other pixels.
VERSION = 1
MAGIC = b"iterators-cache\n"
USED_OFFSET = 16
DESCRIPTION = struct.Struct("=II")
JSON_OFFSET = 32
LONGEST_JSON = 1 << 20
PAGE = 4096
LOCK_SECONDS = 10.0
#: A word of the table is the offset of an image and, in its lowest bits, the length, both in units
#: of bytes.
WORD_LENGTH_BITS, WORD_UNIT = 24, 64

OFFSETS = ("table_place", "data_place")

_OTHER = "delete the file or name another one"
#: For files that this module did not make, which may be somebody's data.
_NOT_OURS = "leave it alone, and name a file for the cache that does not exist yet"


@dataclass(frozen=True)
class OpenCacheFile:
    """An open cache file: its descriptor, its mapping for reading, and the offsets of its parts."""

    file: int
    mapping: memoryview
    used_offset: int
    table_offset: int
    data_offset: int
    seed: int
    used: int  # bytes of the data that were given away when it was opened


def open_cache_file(
    path: str, count: int, channels: int, capacity: int, settings: Mapping[str, str]
) -> OpenCacheFile:
    """Open the file of a cache, after making it if it does not exist.

    `count` records have `channels` bytes a pixel; a file with less than `capacity` bytes for data
    grows.  `settings` must be the same for the images to be of use, else it is a CacheFileError.
    """
    new_facts = {
        "version": VERSION,
        "byte_order": sys.byteorder,
        "records": count,
        "channels": channels,
        **settings,
    }
    if not os.path.lexists(path):
        _make(path, new_facts, capacity)
    if not os.path.isfile(path):
        raise CacheFileError(f"a cache must be a regular file: {_NOT_OURS}", path=path)
    file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        facts = _description(path, file, new_facts)
        table, data = _offsets(facts)
        with _locked(path, file):
            _grow(path, file, data + capacity)
            size = os.fstat(file).st_size
            used = _settle(path, file, table, count, size - data)
            mapping = _map(path, file, size)
        return OpenCacheFile(file, mapping, USED_OFFSET, table, data, int(facts["id"], 16), used)
    except BaseException:
        os.close(file)
        raise


def _make(path: str, new_facts: Mapping[str, Any], capacity: int) -> None:
    """Make a new, empty file, which appears complete, unless another process was faster."""
    description = {"id": secrets.token_hex(8), **new_facts}
    table, data = _offsets(description)
    text = json.dumps({**description, "table_place": table, "data_place": data}).encode()
    temporary = f"{path}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    try:
        with open(temporary, "xb") as file:
            file.write(MAGIC + bytes(8) + DESCRIPTION.pack(len(text), zlib.crc32(text)) + text)
            # Zeros that are written, so that there is room for them on the disk.
            for offset in range(file.tell(), data, 1 << 20):
                file.write(bytes(min(1 << 20, data - offset)))
            file.truncate(data + capacity)
            file.flush()
            os.fsync(file.fileno())
        _publish(temporary, path)
    except OSError as error:
        raise CacheFileError(
            f"a cache for {new_facts['records']} records cannot be made here: "
            f"{error.strerror or error}",
            path=path,
        ) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _offsets(description: Mapping[str, Any]) -> tuple[int, int]:
    """Return the offsets of table and data, in which these two numbers themselves do not count."""
    rest = {name: description[name] for name in description if name not in OFFSETS}
    length = len(json.dumps(rest)) + 100  # the two offsets
    table = -(-(JSON_OFFSET + length) // PAGE) * PAGE
    return table, -(-(table + 8 * description["records"]) // PAGE) * PAGE


def _publish(temporary: str, path: str) -> None:
    """Give a file its name, if no file has it."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        if not os.path.lexists(path):
            os.replace(temporary, path)


def _description(path: str, file: int, new_facts: Mapping[str, Any]) -> dict[str, Any]:
    """Read the description of a file, if it is the wanted one."""
    head = _read(file, JSON_OFFSET, 0)
    if head[: len(MAGIC)] != MAGIC:
        raise CacheFileError(f"the file is not a cache of images: {_NOT_OURS}", path=path)
    if len(head) < JSON_OFFSET:
        raise _damaged(path)
    length, check = DESCRIPTION.unpack_from(head, 24)
    text = _read(file, length, JSON_OFFSET) if length <= LONGEST_JSON else b""
    if len(text) < length or zlib.crc32(text) != check or not text:
        raise _damaged(path)
    facts = _parsed(path, text)
    for name in [*new_facts, *facts]:
        if name not in ("id", *OFFSETS) and facts.get(name) != new_facts.get(name):
            raise CacheFileError(
                f"the cache was made with {_shown(name)}={_shown(facts.get(name))}, but now "
                f"{_shown(name)}={new_facts.get(name)}: {_OTHER}",
                path=path,
            )
    # A checksum tells what was changed by accident from what was written, and no more than that:
    # the offsets become addresses, so they must be those that this version chooses.
    table, data = _offsets(facts)
    number = facts.get("id")
    if (
        type(number) is not str
        or not re.fullmatch("[0-9a-f]{16}", number)
        or (facts.get("table_place"), facts.get("data_place")) != (table, data)
        or os.fstat(file).st_size < data
    ):
        raise _damaged(path)
    return facts


def _parsed(path: str, text: bytes) -> dict[str, str | int]:
    """Parse a description as `_make` writes it: names with a string or an integer each."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    if type(facts) is not dict or not all(type(value) in (str, int) for value in facts.values()):
        raise _damaged(path)
    if json.dumps(facts).encode() != text:  # other blanks, or a name that comes twice
        raise _damaged(path)
    return facts


def _shown(value: Any) -> str:
    """Show an entry of a description in a message: it may be long, or unprintable."""
    text = str(value)
    return text if len(text) <= 100 and text.isprintable() else f"{text[:100]!a}..."


def _damaged(path: str) -> CacheFileError:
    return CacheFileError(f"the cache is damaged: {_OTHER}", path=path)


def _read(file: int, size: int, offset: int) -> bytes:
    """Return bytes of a file, fewer at its end."""
    with open(file, "rb", closefd=False) as view:
        view.seek(offset)
        return view.read(size)


def _map(path: str, file: int, size: int) -> memoryview:
    try:
        return map_descriptor(file, size, path)
    except (OSError, OverflowError, ValueError) as error:
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            raise  # too many open files: nothing is wrong with this one
        raise CacheFileError(
            f"the cache of {size} bytes cannot be mapped ({error}): {_OTHER}", path=path
        ) from error


def _grow(path: str, file: int, size: int) -> None:
    if os.fstat(file).st_size < size:
        try:
            os.truncate(file, size)
        except OSError as error:
            raise CacheFileError(
                f"the cache cannot grow to {size} bytes: {error.strerror or error}", path=path
            ) from error


def _settle(path: str, file: int, table: int, count: int, size: int) -> int:
    """Make the table and the number of bytes in use agree, whatever the last writer left.

    Words that point behind the data are removed, and no byte that an image may be using is given
    away again.  Returns the number of bytes in use.
    """
    content = _read(file, 8 * count, table)
    if len(content) < 8 * count:  # cut off just now
        raise _damaged(path)
    words = np.frombuffer(content, np.uint64)
    ends = (words >> np.uint64(WORD_LENGTH_BITS)).astype(np.int64) * WORD_UNIT
    ends += (words & np.uint64((1 << WORD_LENGTH_BITS) - 1)).astype(np.int64) * WORD_UNIT
    outside = (ends > size) | (words == 1)
    with open(file, "r+b", buffering=0, closefd=False) as target:
        for number in np.flatnonzero(outside).tolist():
            target.seek(table + 8 * number)
            target.write(bytes(8))
        (used,) = struct.unpack("=Q", _read(file, 8, USED_OFFSET))
        least = int(ends[~outside].max(initial=0))
        # A number that cannot be is damage: what the table says remains.
        right = max(used, least) if used % WORD_UNIT == 0 and used <= size else least
        if right != used:
            target.seek(USED_OFFSET)
            target.write(struct.pack("=Q", right))
    return right


@contextlib.contextmanager
def _locked(path: str, file: int) -> Iterator[None]:
    """Hold the lock that the writing threads of all processes share, for microseconds."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            _lock(file)
            break
        except (BlockingIOError, PermissionError):  # PermissionError on Windows
            if time.monotonic() > until:
                raise CacheFileError(
                    "another process keeps the cache locked: if it is stopped, end it, or name "
                    "another file",
                    path=path,
                ) from None
        except OSError as error:
            raise CacheFileError(
                f"the file system has no locks ({error.strerror}): name a file on a local disk",
                path=path,
            ) from error
        time.sleep(0.001)
    try:
        yield
    finally:
        _unlock(file)


# These are the locks of image_cache.h.
if sys.platform == "win32":
    import msvcrt

    LOCK_OFFSET = 1 << 62

    def _lock(file: int) -> None:
        os.lseek(file, LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock(file: int) -> None:
        os.lseek(file, LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
