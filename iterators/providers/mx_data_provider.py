"""`MXDataProvider`: any object with MXNet's iterator protocol as a provider.

It copies every array that comes out of the object and passes batches on in their order.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np

from recordio.keywords.checks import unknown_keyword

from ..core.batch import DataBatch, DataDesc
from ..core.dtypes import array_over
from .abstract import AbstractDataProvider, check_announced, described_size
from .data_iter import batch_of_parts, listed
from .wrapper import Saved, Wrapper, described


class MXDataProvider(Wrapper, metaclass=abc.ABCMeta):
    """Any object with MXNet's iterator protocol as a provider.

    Parameters
    ----------
    data_iter : object
        It has `reset` and either `next` (a batch, or StopIteration) or `iter_next` with `getdata`,
        `getlabel`, `getpad` and, optionally, `getindex`; `provide_data` and `provide_label`
        describe its batches.  Arrays of MXNet become NumPy arrays, and all arrays are copied,
        because MXNet writes later batches over those it has handed out.
    data_name, label_name : str, optional
        New names of the first data and label array; ``label_name=None`` for no labels.
    data_specs : (Space, source), optional
        The form of a batch, which is a `DataBatch` as well.  A source is the name of an array, or
        "features" or "targets" where there is only one.
    device : str or torch.device, optional
        Device of the arrays; None for NumPy.
    epoch : int
        Number of the first epoch.

    Notes
    -----
    In MXNet and MXNet.jl this is the class of all iterators that are not written in Python, so the
    iterators of this package that stand in their places are instances of it: ``isinstance(it,
    MXDataProvider)``.

    The first epoch uses a foreign object as it is, unless `reset` is called before; MXNet's
    iterators have fetched a batch by then. A provider that was used is reset. A saved state holds
    that of the object if it has one; otherwise the position in the epoch, and loading it draws the
    batches before it again, which is exact only if the object repeats its batches.

    Examples
    --------
    >>> class Old:
    ...     provide_data, provide_label, at = [("data", (2,))], [], 0
    ...     def reset(self): self.at = 0
    ...     def iter_next(self): self.at += 1; return self.at < 3
    ...     def getdata(self): return np.full(2, self.at)
    ...     def getlabel(self): return None
    ...     def getpad(self): return 0
    >>> [batch.data[0].tolist() for batch in MXDataProvider(Old())]
    [[1, 1], [2, 2]]
    """

    def __init__(
        self,
        data_iter: Any,
        *,
        data_name: str | None = None,
        label_name: str | None = "",
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            names = ("data_iter", "data_name", "label_name", "data_specs", "device", "epoch")
            raise unknown_keyword("MXDataProvider", name, names)
        super().__init__(device, epoch)
        for method in ("reset", "provide_data", "provide_label"):
            if not hasattr(data_iter, method):
                raise TypeError(
                    f"{type(data_iter).__name__} has no {method}: not an MXNet iterator"
                )
        if not hasattr(data_iter, "next") and not hasattr(data_iter, "iter_next"):
            raise TypeError(f"{type(data_iter).__name__} has neither next() nor iter_next()")
        self.data_iter = data_iter
        self._around([data_iter])
        self._has_labels = label_name is not None
        data = _descriptions(data_iter.provide_data, data_name)
        label = _descriptions(data_iter.provide_label, label_name) if self._has_labels else []
        described = [*data_iter.provide_data, *(data_iter.provide_label or ())]
        size = described_size(described) if described else data_iter.batch_size
        self._describe(data, label, data_specs, size)

    def _advance(self) -> DataBatch:
        inside = self.data_iter
        batch = inside.next() if hasattr(inside, "next") else batch_of_parts(inside)
        index, data, label = batch.index, listed(batch.data), listed(batch.label)
        if not self._provider_checked and getattr(batch, "bucket_key", None) is None:
            check_announced(inside, data, label)
        self._provider_checked = True
        return self._batch(
            DataBatch(
                [_copied(array) for array in data],
                [_copied(array) for array in label] if self._has_labels else [],
                pad=batch.pad or 0,
                index=None if index is None else np.array(index, np.uint64),
                provide_data=self._described,
            )
        )

    def _restart(self) -> None:
        self.data_iter.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the run."""
        if not _has_state(self.data_iter):
            return self._own_state()
        inside = Saved.of(self.data_iter)
        return {**self._own_state([inside]), "inside": inside.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        position = self._checked_own_state(state)
        if ("inside" in state) != _has_state(self.data_iter):
            raise ValueError(
                f"the state does not belong to an iterator of type {type(self.data_iter).__name__}"
            )
        if "inside" in state:
            self.data_iter.load_state_dict(state["inside"])
        else:
            number = position.done
            if self._number or self._provider_asked:
                self.data_iter.reset()
            self._number, self._over = 0, False
            for _ in range(number):
                self._advance()
        self._resume(state, position)

    def close(self) -> None:
        """Close the object inside, if it can be closed."""
        if hasattr(self.data_iter, "close"):
            self.data_iter.close()


def _has_state(it: Any) -> bool:
    """Return whether an object can say where it is; a provider without a state cannot."""
    none = AbstractDataProvider.state_dict
    return hasattr(it, "state_dict") and getattr(type(it), "state_dict", None) is not none


def _descriptions(descriptions: Any, name: str | None) -> list[DataDesc]:
    result = [described(desc, desc[0]) for desc in descriptions or ()]
    return [described(result[0], name), *result[1:]] if name and result else result


def _copied(array: Any) -> Any:
    """An array of our own: NumPy, or a scipy matrix."""
    if hasattr(array, "asscipy"):  # a sparse array of MXNet
        return array.asscipy()
    if hasattr(array, "asnumpy"):
        return array.asnumpy()  # always a copy
    if hasattr(array, "detach"):
        return array_over(array).copy()
    return array.copy() if hasattr(array, "copy") else np.array(array)
