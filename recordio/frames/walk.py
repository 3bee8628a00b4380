"""One walk over the records of a file that may be damaged; it continues after damage.

Records and damage are numbered through, in the order of the file, so that a number means the same
record wherever it is named.  Nothing is repaired, and nothing is read ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recordio.frames.frame import Run, find_head, survey

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package


class Piece(NamedTuple):
    """Adjacent whole records of a file, or one stretch of damage between them."""

    #: Where the records begin, or the damage: int64 array.
    offsets: NDArray[np.int64]
    #: The number of each: int64 array; -1 for what an index does not list.
    numbers: NDArray[np.int64]
    #: Offset behind them.
    end: int
    #: "ok", or the kind of damage.
    kind: str
    #: The damage in words, else empty.
    reason: str
    #: What `survey` found; for damage the run that ended there.
    run: Run

    @property
    def is_damage(self) -> bool:
        """True for damage, False for records."""
        return self.kind != "ok"


def walk(
    data: Buffer, start: int = 0, listed: NDArray[np.int64] | None = None, payloads: bool = False
) -> Iterator[Piece]:
    """Yield whole records in runs of a few thousand, and the damage between them.

    It begins at the offset `start` of a record or of damage, which has number 0.  `listed` are the
    offsets in an index, in any order.  Their order in the file then gives the numbers, and damage
    has that of the first record that the index lists in it.  Without an index a stretch of damage
    has one number, however many records it has destroyed.  With `payloads` all payloads are looked
    at, as `survey` does; the same records are whole either way.

    >>> from recordio.frames.encoder import encode
    >>> data = encode(b"a") + bytes(8) + encode(b"b") + encode(b"c")
    >>> for piece in walk(data):
    ...     print(piece.kind, piece.numbers, piece.offsets, piece.end)
    ok [0] [0] 12
    zeros [1] [12] 20
    ok [2 3] [20 32] 44
    """
    size = memoryview(data).nbytes
    listed = None if listed is None else np.sort(listed)
    count, damage = 0, None
    while True:
        run = survey(data, start, payloads)
        if len(run.offsets):
            if damage is not None:
                yield _damaged(damage, count, int(run.offsets[0]), size, listed)
                count, damage = count + 1, None
            numbers = _numbers(run.offsets, run.end, count, listed)
            yield Piece(run.offsets, numbers, run.end, "ok", "", run)
            count += len(run.offsets)
        start = run.end
        if run.kind not in ("ok", "end"):
            # A stretch in which every plausible head leads nowhere is one damage, not many.
            damage = damage or run
            start = find_head(data, run.end + 4)
        if run.kind == "end" or start == size:
            break
    if damage is not None:
        yield _damaged(damage, count, size, size, listed)


def _damaged(
    run: Run, number: int, resumed: int, size: int, listed: NDArray[np.int64] | None
) -> Piece:
    """Describe the damage behind a run, up to where whole records begin again."""
    kind, reason = run.kind, run.reason
    if resumed < size and kind.startswith("truncated"):
        kind, reason = "wrong_length", "a length that leads behind the end of the file"
    elif kind in ("bad_magic", "zeros") and run.end:
        reason += "; or the length of the record before is too small"
    offsets = np.array([run.end], np.int64)
    return Piece(offsets, _numbers(offsets, resumed, number, listed), resumed, kind, reason, run)


def _numbers(
    offsets: NDArray[np.int64], end: int, first: int, listed: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Number what begins at some offsets and reaches to the next of them, or to `end`."""
    if listed is None:
        return np.arange(first, first + len(offsets))
    numbers, after = np.searchsorted(listed, [offsets, np.append(offsets, end)[1:]])
    return np.where(numbers < after, numbers, -1)
