"""`World`: rank and world size of a process, by one rule for everything that divides data by ranks.

They are never guessed twice: whoever has used them goes on with them or gets an error.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed
import torch.utils.data

from recordio.keywords.checks import integer


class World:
    """Rank and world size: those given, of `torch.distributed`, or of the environment."""

    def __init__(self, rank: int | None = None, world_size: int | None = None) -> None:
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size belong together: give both or neither")
        self._given: tuple[int, int] | None = None
        self._used: tuple[int, int] | None = None
        if rank is not None and world_size is not None:
            world_size = integer("world_size", world_size, low=1)
            self._given = integer("rank", rank, low=0, high=world_size - 1), world_size

    def get(self) -> tuple[int, int]:
        """Return rank and world size; from now on they may not be others.

        A wrong environment is a ValueError, another rank than before a RuntimeError.
        """
        if self._given is not None:
            return self._given
        if self._used is not None and torch.utils.data.get_worker_info() is not None:
            return self._used  # torch.distributed knows nothing in a worker
        place, where = _place()
        if self._used is None:
            if place is None and os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
                raise ValueError(
                    f"{where} is not a rank as yet: make the process group before the data are "
                    "used, or pass rank= and world_size="
                )
            self._used = place or (0, 1)
        elif place is not None and place != self._used:
            raise RuntimeError(
                f"the data have been divided for rank {self._used[0]} of {self._used[1]}, and now "
                f"this is rank {place[0]} of {place[1]} by {where}: make the process group before "
                "the data are used, or pass rank= and world_size="
            )
        return self._used

    def expected(self) -> tuple[int, int]:
        """Return what `get` would, without fixing it; 0 and 1 as long as nobody knows.

        Scripts ask for the number of batches before a launcher starts the other processes.
        """
        return self.used or _place()[0] or (0, 1)

    @property
    def used(self) -> tuple[int, int] | None:
        """Rank and world size if they are fixed already."""
        return self._given or self._used

    def __getstate__(self) -> dict[str, Any]:
        has_rank = self._used is not None or _place()[0] is not None
        return {"_given": self._given, "_used": self.get() if has_rank else None}


def _place() -> tuple[tuple[int, int] | None, str]:
    """Rank and world size as far as they are known, and who says so."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return (distributed.get_rank(), distributed.get_world_size()), "torch.distributed"
    rank, world_size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    where = f"the environment (RANK={rank!r}, WORLD_SIZE={world_size!r})"
    # Launchers that start the other processes themselves, later, leave RANK to those.
    if not rank and (not world_size or "RANK" not in os.environ):
        return None, where
    if not rank.isdecimal() or not world_size.isdecimal() or int(rank) >= int(world_size):
        raise ValueError(
            f"{where} is not a rank below the world size: set both, as torchrun does, or "
            "neither, or pass rank= and world_size="
        )
    return (int(rank), int(world_size)), where


def drawn_seed() -> int:
    """Draw a seed as torch's `DataLoader` does: `torch.manual_seed` decides which."""
    return int(torch.empty((), dtype=torch.int64).random_().item())


def shared_seed(seed: int, rank: int, ranks: int) -> int:
    """Return the seed of rank 0, by which all ranks shuffle; a ValueError if nobody can ask it."""
    if ranks == 1:
        return seed
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise ValueError(
            f"rank {rank} of {ranks} has drawn a seed of its own, and all ranks need the same one "
            "to share a permutation: give seed=, or make the process group before the first loop"
        )
    seeds = [seed]
    torch.distributed.broadcast_object_list(seeds, src=0)
    return seeds[0]
