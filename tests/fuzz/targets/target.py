"""What a target is, and the few things that all of them need.

A target is a function of bytes.  It feeds them to a parser in every way there is, lets the errors
through that are documented and no others, and compares what different ways give.  Whatever else it
raises is a finding, and so is a crash, a hang, or memory that a small input has no need of.
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from recordio.errors import RecordIOError
from recordio.formats.image_header import DEFAULT_MAX_PIXELS

from .mutate import change_bytes

CORPUS = Path(__file__).parents[1] / "corpus"
#: Longer inputs find nothing that shorter ones do not, only later.
LONGEST = 1 << 16
#: Most images are refused beyond this, for the sake of speed; some may have what is the default.
FEW_PIXELS = 1 << 18


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes
    ----------
    name : str
        As in ``make fuzz TARGET=name``; the folder of its corpus.
    check : callable
        Takes bytes; raises for a finding.
    change : callable
        ``change(data, draw)`` makes one change that knows the format.
    mend : callable
        Makes the checksums right again, so that changes reach what they protect.
    words : sequence of bytes
        What the format is made of.
    errors : tuple of exception classes
        Those that the parser may raise for any input.
    """

    name: str
    check: Callable[[bytes], None]
    change: Callable[[bytes, random.Random], bytes] | None = None
    mend: Callable[[bytes], bytes] | None = None
    words: tuple[bytes, ...] = ()
    errors: tuple[type[BaseException], ...] = (RecordIOError,)

    def run(self, data: bytes) -> None:
        """Feed an input to the parser; returns if it is read or refused as it should be."""
        try:
            self.check(data)
        except AssertionError:  # which may also be a ValueError
            raise
        except self.errors:
            pass

    def corpus(self) -> list[Path]:
        """Files of the corpus."""
        folder = CORPUS / self.name
        return sorted(path for path in folder.iterdir() if path.is_file())

    def mutated(self, draw: random.Random, others: list[bytes]) -> bytes:
        """An input made of those of the corpus."""
        data = draw.choice(others) if others else b""
        for _ in range(draw.choice([1, 1, 1, 2, 2, 3, 5, 8])):
            data = self.changed(data, draw, others)
        if self.mend is not None and draw.random() < 0.9:
            data = self.mend(data)
        return data

    def changed(self, data: bytes, draw: random.Random, others: Iterable[bytes] = ()) -> bytes:
        """The input with one change."""
        if self.change is not None and draw.random() < 0.6:
            data = self.change(data, draw)
        else:
            data = change_bytes(data, draw, self.words, list(others))
        return data[:LONGEST]


def drawing(data: bytes) -> random.Random:
    """Choices that depend on the input alone, so that a finding is its bytes and nothing else."""
    return random.Random(zlib.crc32(data))


def most_pixels(data: bytes) -> int:
    """The limit of this image."""
    return DEFAULT_MAX_PIXELS if drawing(data).random() < 1 / 64 else FEW_PIXELS


_folder: str | None = None
_owner = 0


def scratch(name: str, data: bytes | None = None) -> str:
    """Path of a file of this process, with these contents; in memory where that is possible."""
    global _folder, _owner
    if _folder is None or _owner != os.getpid():
        shared = "/dev/shm"
        _folder = tempfile.mkdtemp(
            prefix="fuzz-", dir=shared if os.access(shared, os.W_OK) else None
        )
        _owner = os.getpid()
        atexit.register(clear_scratch)
    path = os.path.join(_folder, name)
    if data is not None:
        with open(path, "wb") as file:
            file.write(data)
    return path


def clear_scratch() -> None:
    """Remove the files of this process."""
    if _folder is not None and _owner == os.getpid():
        shutil.rmtree(_folder, ignore_errors=True)


def clear_folder(path: str) -> None:
    """Make an empty folder."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
