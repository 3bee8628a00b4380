"""The progress of a run, noted beside its output, so that the same call continues after a SIGKILL.

A journal says what is being made, in a fingerprint, and then in one line for each step how much of
which output is safely on the disk.  What it says is believed only by a run that makes the same.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ..bytes.storage import AtomicOutput
from ..bytes.temporary import JOURNAL_SUFFIX, Temporary
from ..exit_hooks import at_end

#: Number of the output, bytes of it, device and inode.
STEP_LINE = re.compile("[0-9]{1,9}( [0-9]{1,20}){3}")


class Progress(NamedTuple):
    """Bytes of an output that were written, and the file that holds them."""

    size: int
    device: int
    inode: int


class Journal:
    """Notes of a run beside its first output, under a temporary name.

    The fingerprint says in one line what is being made: sources, plan and outputs.  `steps` has for
    the number of an output what a killed run with the same fingerprint had written.
    """

    def __init__(self, path: str, fingerprint: str) -> None:
        self.steps: dict[int, Progress] = {}
        self._temporary = Temporary(os.path.realpath(path) + JOURNAL_SUFFIX)
        self._cleanup = at_end(self, _remove, self._temporary, os.getpid())
        descriptor = self._temporary.take_over()
        if descriptor is not None:
            self.steps = _read(self._temporary.path, fingerprint)
        else:
            descriptor = self._temporary.make()
        assert descriptor is not None  # it is no folder
        self._file = os.fdopen(descriptor, "w", encoding="ascii")
        self._file.truncate(0)
        self._write(fingerprint)

    def size_of(self, number: int, path: str) -> int:
        """Return the bytes to keep of an unpublished file; it must be that of the journal."""
        progress = self.steps.pop(number, None)
        if progress is None:
            return 0
        status = os.stat(path)
        same = (status.st_dev, status.st_ino) == (progress.device, progress.inode)
        return progress.size if same and status.st_size >= progress.size else 0

    def note(self, number: int, output: AtomicOutput, size: int) -> None:
        """Note how much of an output is written, after it is on the disk."""
        file = output.files[0]
        file.flush()
        os.fsync(file.fileno())
        status = os.fstat(file.fileno())
        self._write(number, size, status.st_dev, status.st_ino)

    def _write(self, *words: object) -> None:
        self._file.write(" ".join(map(str, words)) + "\n")
        self._file.flush()

    def remove(self) -> None:
        """End the run: nothing is left to go on with."""
        self._file.close()
        self._cleanup()


def _remove(temporary: Temporary, owner: int) -> None:
    if os.getpid() == owner:
        temporary.remove()


def _read(path: str, fingerprint: str) -> dict[int, Progress]:
    with open(path, encoding="ascii", errors="replace") as file:
        lines = file.read().split("\n")[:-1]  # a last line without its end was being written
    if not lines or lines[0] != fingerprint:
        return {}
    steps = {}
    for line in lines[1:]:
        if not STEP_LINE.fullmatch(line):
            break  # no run wrote this: what follows is not believed either
        number, *words = map(int, line.split())
        steps[number] = Progress(*words)
    return steps
