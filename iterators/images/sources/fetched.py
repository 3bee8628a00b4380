"""Records of files on servers: fetched and pinned while they are read.

Every function here takes local packs as well, for which there is nothing to fetch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.block_table import BLOCK
from recordio.bytes.remote.heads import LARGE_RECORD, record_heads
from recordio.bytes.remote.mirror import MOST_REQUEST, Pin
from recordio.packs.open_pack import FieldPack, OpenPack

from .source import RecordFiles

#: Records of which something is read at once, when something is read of all.
READ_AT_ONCE = 4096
#: Blocks of the largest request.
STRIPE = MOST_REQUEST // BLOCK
#: Indexes that are fetched at once.
LOOKUPS = 16


class PinnedRecords:
    """Records of several files that are there, or on their way, until they are released."""

    def __init__(self, pins: list[Pin]) -> None:
        self._pins = pins

    def __add__(self, other: PinnedRecords) -> PinnedRecords:
        """Take the records of both, released together."""
        return PinnedRecords([*self._pins, *other._pins])

    @property
    def nbytes(self) -> int:
        """Bytes that cannot be given up meanwhile, and could otherwise."""
        return BLOCK * sum(pin.pinned for pin in self._pins)

    @property
    def ready(self) -> bool:
        """True if nothing is on its way any more; some may have failed."""
        return all(pin.ready for pin in self._pins)

    def wait(self) -> None:
        """Until all are there; raises a `recordio.RemoteFileError` for what could not be had."""
        for pin in self._pins:
            pin.wait()

    def release(self) -> None:
        """They are not needed any more; idempotent."""
        for pin in self._pins:
            pin.release()

    def __enter__(self) -> PinnedRecords:
        try:
            self.wait()
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


def pin_records(
    packs: Sequence[OpenPack], starts: np.ndarray, records: np.ndarray, stripe: int = 1
) -> PinnedRecords:
    """Pin records of packs, by their numbers in any order; those of each begin at its start.

    Of missing blocks so many are fetched at once as a stripe has; see `bytes.remote.mirror.Mirror`.
    """
    records = np.asarray(records, np.int64)
    pins: list[Pin] = []
    if len(packs) == 1:
        files = [(0, records)]
    else:
        number = np.searchsorted(starts, records, side="right") - 1
        files = [(int(file), records[number == file]) for file in np.unique(number)]
    try:
        for file, mine in files:
            pack = packs[file]
            if pack.remote is not None:
                offsets = pack.offsets[mine - starts[file]]
                offsets = offsets[offsets >= 0]  # of a field, some may have none
                pins.append(pack.remote.pin(offsets, stripe, urgent=False))
    except BaseException:
        PinnedRecords(pins).release()
        raise
    return PinnedRecords(pins)


class FetchedFiles:
    """The files of a source that lie on servers, as one."""

    def __init__(self, packs: Sequence[OpenPack]) -> None:
        remotes = {id(p.remote.mirror): p.remote for p in packs if p.remote is not None}
        self._files = list(remotes.values())
        mirrors = [file.mirror for file in self._files]
        #: Bytes of all, whether all of them stay on the disk, and what mirrors may take there.
        self.size: int = sum(mirror.size for mirror in mirrors)
        self.resident: bool = all(mirror.resident for mirror in mirrors)
        self.limit: int = max(mirror.folder.limit for mirror in mirrors)

    def counters(self) -> dict[str, float]:
        """Add up the counters of all files since they were opened."""
        total: dict[str, float] = {}
        for file in self._files:
            for name, value in file.counters().items():
                total[name] = total.get(name, 0) + value
        return total


class FetchedRecordFiles(RecordFiles):
    """`RecordFiles` on servers; whoever reads without the GIL has to pin the records meanwhile."""

    def __init__(self, packs: Sequence[OpenPack], offsets: np.ndarray, starts: np.ndarray) -> None:
        super().__init__(
            [pack.reader for pack in packs], offsets, starts, numberings(packs), absences(packs)
        )
        self._packs, self._starts = packs, starts

    def read(self, number: int) -> bytes:
        """Copy the bytes of one record, which are fetched before."""
        with pin_records(self._packs, self._starts, np.array([number])):
            return super().read(number)


def numberings(packs: Sequence[OpenPack]) -> list[Callable[[int], int]]:
    """Say for each file how errors number its records."""
    return [pack.number_of for pack in packs]


def absences(packs: Sequence[OpenPack]) -> list[Callable[[int], Exception]] | None:
    """Say for each file of a field what makes the error for a sample without it."""
    return [pack.absence for pack in packs if isinstance(pack, FieldPack)] or None


def pinned_pieces(pack: OpenPack, table: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield some offsets of records, a few thousand at a time, with the row of the first of them.

    The records are there until the next piece is asked for.
    """
    for begin in range(0, len(table), READ_AT_ONCE):
        piece = table[begin : begin + READ_AT_ONCE]
        if pack.remote is None:
            yield begin, piece
        else:
            with pack.remote.pin(piece):
                yield begin, piece


def is_far(pack: OpenPack) -> bool:
    """Tell whether heads of records are fetched alone where only these are wanted."""
    if pack.remote is None or not len(pack):
        return False
    mirror = pack.remote.mirror
    return mirror.size // len(pack) >= LARGE_RECORD and not mirror.complete


def far_heads(pack: OpenPack, kind: np.dtype) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first bytes of records as an array of some type, a few thousand at a time.

    Each piece comes with the position of its first record; zeros where the file ends within one.
    """
    remote: Any = pack.remote
    for position, heads in record_heads(remote.mirror, pack.offsets, kind.itemsize):
        yield position, heads.view(kind)[:, 0]


def read_offsets(packs: Sequence[OpenPack]) -> None:
    """Have the indexes of remote files fetched and looked at, several at a time."""
    remote = [p for p in packs if not p.file.is_local and p.container is None]
    if len(remote) < 2:
        return
    with ThreadPoolExecutor(LOOKUPS, "remote-indexes") as pool:
        # Not as they are asked for: `cached_property` of Python 3.11 makes one wait for another.
        for pack, reader in zip(remote, pool.map(OpenPack.opened, remote), strict=True):
            pack.reader = reader
        list(pool.map(len, [pack.reader for pack in remote if pack.index is None]))


def mapped(pack: OpenPack) -> memoryview:
    """Map the bytes of a file; of one on a server those that are there."""
    return pack.file.map() if pack.remote is None else pack.remote.mirror.view


def file_ends(pack: OpenPack, count: int) -> tuple[int, bytes, bytes]:
    """Read the size of a file, and its first and last bytes."""
    if pack.samples is not None and not os.path.isfile(pack.file.name) and pack.remote is None:
        return len(pack), bytes(pack.samples.names[:count]), bytes(pack.samples.names[-count:])
    file = pack.file if pack.remote is None else StoredFile(pack.path, pack.remote.mirror)
    return file.ends(count)
