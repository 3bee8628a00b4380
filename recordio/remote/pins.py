"""Which blocks of a mirror stay: those that somebody holds, or all of them.

A pin is a shared lock on the block in the table, so that no other process gives the block up.
Within a process the holders of a block are counted.
"""

from __future__ import annotations

import time

import numpy as np

from recordio.remote.block_table import PIN, BlockTable
from recordio.remote.fetching import fetcher

__all__ = ["Pins"]

#: Seconds between two looks at a block that another process gives up.
PAUSE = 0.01


class Pins:
    """The pins of one mirror in this process.

    Parameters
    ----------
    table : BlockTable

    Attributes
    ----------
    everywhere : bool
        Whether all blocks are pinned for good; a single one then needs no pin.
    """

    def __init__(self, table: BlockTable) -> None:
        self._table = table
        self._counts: dict[int, int] = {}
        self.everywhere = False

    def pin_all(self) -> None:
        """Have all blocks stay from now on."""
        while True:
            with fetcher().changed:
                if self._table.lock(PIN, max(self._table.count, 1), shared=True):
                    self.everywhere = True
                    return
            time.sleep(PAUSE)

    def add(self, blocks: np.ndarray) -> np.ndarray:
        """Have some blocks stay; what is returned has to be given to `remove`."""
        if self.everywhere:
            return blocks[:0]
        done = 0
        try:
            for block in blocks.tolist():
                while not self._try(block):
                    time.sleep(PAUSE)  # it is being given up at this moment
                done += 1
        except BaseException:
            self.remove(blocks[:done])
            raise
        return blocks

    def _try(self, block: int) -> bool:
        with fetcher().changed:
            count = self._counts.get(block, 0)
            if count or self._table.lock(PIN + block, shared=True):
                self._counts[block] = count + 1
                return True
            return False

    def remove(self, blocks: np.ndarray) -> None:
        """Undo `add`."""
        with fetcher().changed:
            for block in blocks.tolist():
                count = self._counts[block] - 1
                if count:
                    self._counts[block] = count
                else:
                    del self._counts[block]
                    if not self.everywhere:  # otherwise all of them are locked for good
                        self._table.unlock(PIN + block)

    def exclude(self, block: int) -> bool:
        """Keep everybody from pinning a block until `include`; False if somebody has.

        The caller holds the lock of the fetcher.
        """
        return not self.everywhere and block not in self._counts and self._table.lock(PIN + block)

    def include(self, block: int) -> None:
        """Undo `exclude`."""
        self._table.unlock(PIN + block)
