"""What a provider needs besides a `RollOverPlan` to carry samples from epoch to epoch."""

from __future__ import annotations

from ..core.batch import DataBatch
from ..core.order.position import Position
from .planned import PlannedProvider

__all__ = ["FullBatch", "RollingProvider"]


class FullBatch(DataBatch):
    """A batch of samples only, whatever `pad` says."""

    @property
    def count(self) -> int:
        """Number of samples."""
        return self._size()


class RollingProvider(PlannedProvider):
    """Base class of the providers with ``last_batch_handle="roll_over"``."""

    def __len__(self) -> int:
        """Number of batches of a whole epoch; with "roll_over" of the running one."""
        return self._plan.batches(-(-self._position.place % self.batch_size))

    def hard_reset(self) -> None:
        """Begin a new epoch without the samples that the last one left over."""
        with self._access.lock:
            self.reset()
            self._position = Position(self._position.epoch, max(self._position.place, 0))
