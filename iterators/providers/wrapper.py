"""`Wrapper`: the base of providers that are made of other iterators.

It counts epochs and batches, and puts the arrays of a batch where they are wanted and in the form
that is asked for.  Which batch comes next is the business of its subclasses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recordio.keywords.checks import checked_state, integer

from ..core.batch import DataBatch, DataDesc
from ..core.device import placement
from ..core.dtypes import array_over
from ..core.fork_safe_lock import ForkSafeLock
from ..core.order.cutting import Position
from .abstract import AbstractDataProvider, sample_count
from .batch_form import BatchForm
from .form_batches import with_arrays

STATE_VERSION = 1


class Saved(NamedTuple):
    """The state of an iterator inside, and the epoch that it was in."""

    state: Any
    epoch: Any

    @classmethod
    def of(cls, it: Any) -> Saved:
        """Save the state of an iterator; TypeError if it has none."""
        return cls(it.state_dict(), getattr(it, "epoch", None))

    @property
    def ahead(self) -> int | None:
        """Epochs that are over by the state; None for an iterator that does not say which it is."""
        saved = self.state.get("epoch") if isinstance(self.state, Mapping) else None
        if isinstance(saved, int) and isinstance(self.epoch, int):
            return max(saved - self.epoch, 0)
        return None


class Wrapper(AbstractDataProvider):
    """Base of providers around others: a batch of their own, made of the arrays of those inside."""

    _provider_keeps_notes = True

    def __init__(self, device: Any, epoch: int) -> None:
        self._access = ForkSafeLock()
        self._form: BatchForm | None = None
        self._device = device
        self._placement = placement(device)
        self._first = self._epoch = integer("epoch", epoch, low=0)
        self._number = 0  # batches delivered in this epoch
        self._loaded: Position | None = None  # of a state, until it is gone on from
        self._over = False
        self._begun = False  # asked for anything here since the epoch began or was resumed

    @property
    def epoch(self) -> int:
        """Number of the running epoch."""
        return self._epoch

    @property
    def batch_size(self) -> int:
        """Samples in a batch, padding included."""
        return self._batch_size

    def _around(self, iterators: Sequence[Any]) -> None:
        """Say what is inside, which may have been used before."""
        asked = [getattr(it, "_provider_asked", None) for it in iterators]
        self._provider_asked = True if True in asked else None if None in asked else False
        self._inside = iterators
        self._note_first()

    def _note_first(self) -> None:
        """Note the epochs of the iterators inside that belong to the first one here."""
        self._inside_first = [getattr(it, "epoch", 0) for it in self._inside]

    def _advance(self) -> DataBatch:
        """The next batch, as it comes; StopIteration at the end of the epoch."""
        raise StopIteration

    def _restart(self) -> None:
        """Make the next `_advance` the first of an epoch."""

    def next(self) -> DataBatch:
        """Return the next batch; StopIteration at the end of the epoch, until `reset`."""
        with self._access.lock:
            return self._next()

    def _next(self) -> DataBatch:
        self._provider_current = None
        if self._over:
            raise StopIteration
        times = self._provider_times
        if not (self._begun and times.begun):
            times.begin(self._provider_counters())
        times.ask()
        before = self._seconds_inside()
        self._begun = self._provider_asked = True
        try:
            batch = self._advance()
        except StopIteration:
            self._over = True
            raise
        self._number += 1
        self._provider_current = batch
        inside = math.inf if self._reads_ahead else self._seconds_inside() - before
        times.make(sample_count(batch), inside)
        return batch

    #: Whether the iterators inside are asked by threads, for which the loop waits.
    _reads_ahead = False

    def _seconds_inside(self) -> float:
        """Return the seconds that were spent in `next` of the providers inside."""
        inside = (it for it in self._inside if isinstance(it, AbstractDataProvider))
        return sum(it._provider_times.passed for it in inside)

    def _provider_counters(self) -> dict[str, float]:
        totals: dict[str, float] = {}
        for it in self._inside:
            if isinstance(it, AbstractDataProvider):
                for counters in (it._provider_counters(), it._provider_times.spent):
                    for name, value in counters.items():
                        totals[name] = totals.get(name, 0.0) + value
        return totals

    def reset(self) -> None:
        """Make sure that the next batch is the first of an epoch.

        At the start of an epoch this does nothing, so that ``it.reset(); for batch in it:`` loses
        no epoch.  Before the first one it resets what is inside, unless that is known to be at the
        start of an epoch.
        """
        with self._access.lock:
            self._provider_loop = self._provider_current = None
            begun = self._begun or self._number > 0
            if not begun and self._provider_asked is False:
                return
            self._restart()
            if not begun:
                self._note_first()
            self._go_to(Position(self._epoch + begun))

    def _set_inside(self, past: int) -> None:
        """Have the iterators inside begin where they are after so many epochs."""
        super().set_epoch(past)

    def set_epoch(self, epoch: int) -> None:
        """Make the next batch the first of that epoch, if the iterators inside can do so, too.

        After a state of that same epoch was loaded, the rest of the epoch is still delivered.
        """
        position = Position(integer("epoch", epoch, low=self._first))
        with self._access.lock:
            if self._loaded == (epoch, self._number) and not self._begun:
                return
            self._set_inside(position.epoch - self._first)
            self._go_to(position)

    def _describe(
        self, data: Sequence[Any], label: Sequence[Any], data_specs: Any, batch_size: int
    ) -> None:
        """Say what the batches are, in the form that is asked for."""
        data, label = ([described(desc, desc[0]) for desc in part or ()] for part in (data, label))
        self._batch_size = batch_size
        self._described = data  # before the form is applied
        self.provide_data: Sequence[DataDesc] = data
        self.provide_label: Sequence[DataDesc] = label
        if data_specs is None:
            return
        form = BatchForm(data_specs, [desc[0] for desc in data], [desc[0] for desc in label])
        self.batch_type: type[DataBatch] = form.batch_type
        self.provide_data, self.provide_label = form.bind(data, label)
        self._form = form

    def _to_device(self, arrays: Sequence[Any]) -> list[Any]:
        if self._device is None:
            return list(arrays)
        return self._placement.place([array_over(x) if hasattr(x, "detach") else x for x in arrays])

    def _batch(self, batch: DataBatch) -> DataBatch:
        """A batch from inside where it is wanted, in the form that is asked for."""
        if self._form is not None:
            count, fields = batch.count, {"pad": batch.pad or 0, "index": batch.index}
            return self._form.batch(batch.data, batch.label, count, self._to_device, **fields)
        placed = self._to_device([*batch.data, *batch.label])
        return with_arrays(
            batch,
            placed[: len(batch.data)],
            placed[len(batch.data) :],
            pad=batch.pad,
            index=batch.index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )

    def _own_state(self, inside: Sequence[Saved] = (), over: bool | None = None) -> dict[str, Any]:
        """The position of the run, beside the saved states of the iterators inside.

        Behind the last batch of an epoch it is the start of the next one.  An iterator inside whose
        own state is not that of its next epoch is reset when this state is loaded.
        """
        ahead = [saved.ahead for saved in inside]
        counts = [epochs for epochs in ahead if epochs is not None]
        if over is None:
            past = max(counts, default=int(self._over))
        else:  # epochs here are no epochs of the iterators inside
            past, ahead = int(over), [None] * len(ahead)
        state = {
            "version": STATE_VERSION,
            "epoch": self._epoch + past,
            "number": 0 if past else self._number,
        }
        if any((epochs or 0) < past for epochs in ahead):
            state["reset"] = True
        return state

    def _checked_own_state(self, state: Any, *names: str, most: float = math.inf) -> Position:
        """Epoch and batch of a state that has these other entries, too; nothing changes."""
        checked_state(state, "version")
        if state["version"] != STATE_VERSION:
            raise ValueError(
                f"the state has version {state['version']!r}, this release reads {STATE_VERSION}"
            )
        checked_state(state, "epoch", "number", *names)
        return Position.saved(state, done="number", high=most)

    def _resume(self, state: Mapping[str, Any], position: Position) -> None:
        """Be where a state says, the iterators inside having loaded theirs."""
        if state.get("reset"):
            self._restart()
        self._go_to(position)
        self._loaded = position

    def _go_to(self, position: Position) -> None:
        """Be at that batch, as far as that is known here."""
        self._epoch, self._number = position
        self._loaded = None
        self._over = self._begun = self._provider_asked = False
        self._provider_loop = self._provider_current = None


def described(desc: Any, name: str) -> DataDesc:
    """Describe an array, which may be described by a plain pair, under a name."""
    dtype, layout = getattr(desc, "dtype", np.float32), getattr(desc, "layout", None)
    return DataDesc(name, desc[1], dtype, layout)
