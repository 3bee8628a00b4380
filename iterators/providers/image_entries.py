"""`entry_points=` of the image providers: in memory alone, or beside the packs as well.

Decoders note points and use them; `recordio.packs.entry_points` keeps them in files.
"""

from __future__ import annotations

import os
from typing import Any

from recordio.formats.jpeg.entry_store import EntryStore
from recordio.packs.entry_points import keep_entry_points, load_entry_points

__all__ = ["OpenEntries", "open_entries"]


class OpenEntries:
    """Entry points of all records of a provider, and the packs beside which they are kept."""

    def __init__(self, source: Any, kept: bool) -> None:
        self.store: EntryStore = EntryStore(len(source))
        self._packs = list(zip(source.files, source.starts.tolist(), strict=True)) if kept else []
        self._process = os.getpid()
        for pack, first in self._packs:
            load_entry_points(pack, self.store, first)

    def close(self) -> None:
        """Write what is new; a forked child leaves that to its parent.  Idempotent."""
        packs, self._packs = self._packs, []
        for pack, first in packs if self._process == os.getpid() else ():
            keep_entry_points(pack, self.store, first)


def open_entries(source: Any, options: Any) -> OpenEntries | None:
    """Open what `entry_points` asks for; None for nothing."""
    wanted = options.entry_points
    return OpenEntries(source, wanted == "pack") if wanted else None
