"""Work in the background, and lines of a large text file by number, which are counted there.

Memory holds the positions of some lines, one of 4096, and the blocks that were read last.  Nothing
is written, and a line that was not reached yet is an error.
"""

from __future__ import annotations

import bisect
import functools
import threading
from collections.abc import Callable, Iterator

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.errors import RecordIOError

#: Lines whose beginning is not remembered, but that of the first of them.
BLOCK = 4096
PIECE = 1 << 22
LONGEST = 1 << 20
NEWLINE = 10


class NotCounted(Exception):
    """Lines were asked for that are not counted yet."""

    def __init__(self, share: float) -> None:
        super().__init__(f"{share:.0%} of the file was counted so far")
        self.share = share  # of the file that was looked at, 0 to 1


class Background:
    """Work in a thread of its own: `start` begins it, and `failed` says why it ended early."""

    def __init__(self) -> None:
        self.failed = ""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def work(self) -> None:
        """Do the work."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """True while it is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin, unless that was done already."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self.work()
        except (KeyboardInterrupt, NotCounted):
            self.failed = "the page was closed"
        except Exception as error:  # shown on the page; there is nobody else to tell
            self.failed = f"{type(error).__name__}: {error}"


class Lines:
    """Lines of a text file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = StoredFile(path).size()
        self.count: int | None = None  # None while they are counted
        self._file = StoredFile(path).open(buffering=0)
        self._reading = threading.Lock()
        self._starts = [0]
        self._looked = 0
        self._grown = threading.Condition()
        self.block = functools.lru_cache(maxsize=32)(self._block)

    @property
    def share(self) -> float:
        """Share of the file that was counted, 0 to 1."""
        return 1.0 if self.count is not None else self._looked / max(self.size, 1)

    def survey(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Count the lines; the work of a thread."""
        line, last = 0, NEWLINE
        for offset, piece in self._pieces(0):
            if cancelled():
                return
            ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == NEWLINE)
            marks = ends[-(line + 1) % BLOCK :: BLOCK] + (offset + 1)
            line, last = line + len(ends), piece[-1]
            with self._grown:
                self._starts += marks.tolist()
                self._looked = offset + len(piece)
                self._grown.notify_all()
        if cancelled():
            return
        with self._grown:
            self.count = line + (last != NEWLINE)
            self._grown.notify_all()

    def wait_for(self, line: int, seconds: float) -> None:
        """Wait until a line can be read, or all are counted; NotCounted if that takes longer."""
        with self._grown:
            if not self._grown.wait_for(lambda: self._reached(line), seconds):
                raise NotCounted(self.share)

    def _reached(self, line: int) -> bool:
        return self.count is not None or line // BLOCK < len(self._starts)

    def read(self, first: int, stop: int) -> list[bytes]:
        """Return lines `first` to `stop` without their ends, fewer at the end of the file.

        Lines that were not reached yet raise NotCounted.
        """
        lines: list[bytes] = []
        while first < stop and not (self.count is not None and first >= self.count):
            number, skipped = divmod(first, BLOCK)
            block = self.block(number)
            lines += block[skipped : skipped + stop - first]
            first = (number + 1) * BLOCK
            if len(block) < BLOCK:
                break
        return lines

    def _block(self, number: int) -> list[bytes]:
        lines = self.text(number).split(b"\n")
        if not lines[-1]:
            lines.pop()  # what follows the last newline is no line
        return [line.rstrip(b"\r") for line in lines]

    def text(self, number: int) -> bytes:
        """Return the lines of a block as they stand in the file; nothing behind the last.

        A block that was not reached yet raises NotCounted.
        """
        if number + 1 < len(self._starts):
            start = self._starts[number]
            return self.bytes_at(start, self._starts[number + 1] - start)
        if number >= len(self._starts):
            if self.count is None:
                raise NotCounted(self.share)
            return b""
        text = b""
        for _, piece in self._pieces(self._starts[number], 1 << 17):
            text += piece
            ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
            if len(ends) >= BLOCK:
                return text[: ends[BLOCK - 1] + 1]
            if len(text) > LONGEST * (len(ends) + 1):
                raise RecordIOError(f"a line is longer than {LONGEST} bytes", path=self.path)
        return text

    def find(self, text: bytes, start: int = 0, stop: int | None = None) -> int:
        """Return the first position of some bytes, from a position on; -1 if there is none."""
        kept = b""
        for offset, piece in self._pieces(start):
            if stop is not None and offset >= stop:
                break
            index = (kept + piece).find(text)
            if index >= 0:
                return offset - len(kept) + index
            kept = (kept + piece)[-len(text) + 1 :] if len(text) > 1 else b""
        return -1

    def number_of(self, offset: int) -> int:
        """Return the number of the line that a byte belongs to; all lines must be counted."""
        block = bisect.bisect_right(self._starts, offset) - 1
        start = self._starts[block]
        return block * BLOCK + self.bytes_at(start, offset - start).count(b"\n")

    def bytes_at(self, start: int, count: int) -> bytes:
        """Return some bytes of the file; none when it was closed."""
        with self._reading:
            if self._file.closed:
                return b""
            self._file.seek(start)
            data = b""
            while len(data) < count and (more := self._file.read(count - len(data))):
                data += more
        return data

    def _pieces(self, start: int, size: int = PIECE) -> Iterator[tuple[int, bytes]]:
        while piece := self.bytes_at(start, size):
            yield start, piece
            start += len(piece)

    def close(self) -> None:
        """Let the file go."""
        with self._reading:
            self._file.close()
