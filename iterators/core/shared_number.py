"""A number that changes in all processes at once, those of a loader's workers included."""

from __future__ import annotations

from multiprocessing import RawValue, context
from typing import Any


class SharedNumber:
    """A whole number of 64 bits in memory that forked and spawned processes share.

    Pickled for anything but the start of a process it is a number of its own.
    """

    def __init__(self, value: int = 0) -> None:
        self._memory = RawValue("q", value)

    @property
    def value(self) -> int:
        """The number now."""
        return self._memory.value

    @value.setter
    def value(self, value: int) -> None:
        self._memory.value = value

    def __getstate__(self) -> Any:
        return self._memory if context.get_spawning_popen() is not None else self.value

    def __setstate__(self, state: Any) -> None:
        self._memory = RawValue("q", state) if isinstance(state, int) else state
