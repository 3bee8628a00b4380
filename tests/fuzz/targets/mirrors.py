"""Mirrors of remote files whose folder was damaged between two runs."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import random
from pathlib import Path

from recordio import RecordIOError, RecordReader
from recordio.bytes.remote.block_table import BLOCK
from recordio.frames.encoder import encode

from .mutate import EDGES
from .target import Target, clear_folder, scratch

URL = "memory://fuzz/a.rec"
#: Three blocks, the last of which is not full; every record is another one.
RECORDS = [random.Random(number).randbytes(40_000 + number) for number in range(15)]
OBJECT = b"".join(map(encode, RECORDS))
assert 2 * BLOCK < len(OBJECT) < 3 * BLOCK
OFFSETS = itertools.accumulate((len(encode(record)) for record in RECORDS[:-1]), initial=0)
INDEX = b"".join(b"%d\t%d\n" % line for line in enumerate(OFFSETS))
OPERATIONS = (b"write", b"cut", b"remove", b"folder", b"copy")
FILES = (b"data", b"blocks", b"about.json", b"blocks.new", b".")


@functools.cache
def leave_modules_out() -> None:
    """Hide all that exists now from the collector, once: going through it each time takes long."""
    gc.freeze()


def read_with(folder: str, positions: list[int]) -> list[bytes | None]:
    """Some records through the mirror in a folder; None for one that is an error."""
    settings = {"remote_cache": folder, "remote_timeout": 1, "remote_cache_size": 1 << 24}
    found: list[bytes | None] = []
    try:
        with RecordReader(URL, **settings) as reader:
            for position in positions:
                try:
                    found.append(bytes(reader[position]))
                except (RecordIOError, OSError):
                    found.append(None)
    finally:
        leave_modules_out()
        gc.collect()  # the mirror is closed with its last user, as a process does at its end
    return found


def damage(folder: Path, line: bytes) -> None:
    """Carry out one line: an operation, a file of the mirror, a place in it, and bytes."""
    operation, name, place, piece = (*line.split(b" ", 3), b"", b"", b"")[:4]
    if name not in FILES or operation not in OPERATIONS:
        return
    path = folder / name.decode()
    at = int(place) % (1 << 21) if place.isdigit() and len(place) < 25 else 0
    with contextlib.suppress(OSError):
        if operation == b"write":
            with open(path, "r+b") as file:
                file.seek(at)
                file.write(piece)
        elif operation == b"cut":  # or made longer
            os.truncate(path, at)
        elif operation == b"remove":
            path.unlink()
        elif operation == b"folder":
            path.unlink()
            path.mkdir()
        elif operation == b"copy":  # of the beginning
            path.write_bytes(path.read_bytes()[:at] + piece)


def check(data: bytes) -> None:
    """A record of a damaged mirror is that of the server, or an error."""
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem().pipe({"/fuzz/a.rec": OBJECT, "/fuzz/a.idx": INDEX})
    folder = scratch("mirrors")
    clear_folder(folder)
    lines = data.split(b"\n")[:20]
    # Before the damage all was read, or a part.
    before = int(lines[0]) % len(RECORDS) if lines[0].isdigit() and len(lines[0]) < 9 else None
    read = [before] if before is not None else list(range(len(RECORDS)))
    assert read_with(folder, read) == [RECORDS[position] for position in read]
    (place,) = Path(folder).glob("a.rec-*")
    for line in lines:
        damage(place, line)
    for _ in range(2):
        try:
            found = read_with(folder, list(range(len(RECORDS))))
        except (RecordIOError, OSError):
            continue
        for right, record in zip(RECORDS, found, strict=True):
            assert record is None or record == right


def change(data: bytes, draw: random.Random) -> bytes:
    """One more line, or one gone."""
    lines = data.split(b"\n")
    if draw.random() < 0.2:
        del lines[draw.randrange(len(lines))]
        return b"\n".join(lines)
    name = draw.choice(FILES)
    most = {b"data": len(OBJECT), b"blocks": 70}.get(name, 100)
    at = draw.choice([draw.randrange(most + 1), draw.choice([0, BLOCK, 2 * BLOCK, *EDGES])])
    piece = draw.choice([b"\0" * 8, b"\1\1\1", b"\2", b"junk" * 8, draw.randbytes(40)])
    line = b" ".join([draw.choice(OPERATIONS), name, b"%d" % at, piece.replace(b"\n", b"x")])
    lines.insert(draw.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


MIRRORS = Target("mirrors", check, change, words=(*OPERATIONS, *FILES))
