"""`Converter`: functions from a list of examples to a batch on a device, as objects.

This module decides what ``device=`` means for functions of users; `concat_examples` stacks.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..core.collate import concat_examples
from ..core.device import TorchDevice, get_device


class Converter:
    """Base class of converters, which make a batch of examples.

    A subclass defines ``__call__(batch, device=None)``.

    Examples
    --------
    >>> class Sum(Converter):
    ...     def __call__(self, batch, device=None):
    ...         return sum(batch)
    >>> Sum()([1, 2])
    3
    """

    def __call__(self, batch: Sequence[Any], device: Any = None) -> Any:
        """Make a batch of examples on a device."""
        raise NotImplementedError(f"{type(self).__name__} defines no __call__(batch, device)")


class _FunctionConverter(Converter):
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, batch: Any, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        if device is not None:
            device = get_device(device)
        return self._function(batch, device, *args, **kwargs)

    def __reduce__(self) -> Any:
        # A decorated function is found by its name, as functions are.
        return self.__qualname__  # type: ignore[attr-defined]


def converter() -> Callable[[Callable[..., Any]], Converter]:
    """Make a decorator that turns ``f(batch, device)`` into a `Converter`.

    The function gets a device object (`NumpyDevice` or `TorchDevice`), with ``device.send(arrays)``
    and ``device.xp``, where the caller passed an integer, a string or a `torch.device`; and None
    where the caller passed None.

    Raises
    ------
    TypeError
        If the decorated object is not callable.
    RuntimeError, ValueError
        When called, as for `get_device`.

    Examples
    --------
    >>> @converter()
    ... def last(batch, device):
    ...     return batch[-1], device
    >>> last([1, 2, 3], -1), last([1, 2, 3])
    ((3, NumpyDevice()), (3, None))
    """

    def decorate(function: Callable[..., Any]) -> Converter:
        if not callable(function):
            raise TypeError(f"a converter is made of a function, not {type(function).__name__}")
        return _FunctionConverter(function)

    return decorate


class ConcatWithAsyncTransfer(Converter):
    """`concat_examples` whose copies to a CUDA device run beside the computation.

    Parameters
    ----------
    stream : torch.cuda.Stream, optional
        Stream for the copies; by default one of its own.
    compute_stream : torch.cuda.Stream, optional
        Stream on which the batches are used; by default the current one at the call.

    Notes
    -----
    At most two batches are copied at a time: their page-locked host memory is kept until the copies
    are done.  For other devices this is `concat_examples`.

    Examples
    --------
    >>> convert = ConcatWithAsyncTransfer()
    >>> convert([1, 2], device=-1)
    array([1, 2])
    """

    def __init__(self, stream: Any = None, compute_stream: Any = None) -> None:
        self.stream: Any = stream
        self.compute_stream = compute_stream
        self._device: Any = None
        self._fixed = False
        self._in_flight: deque[tuple[Any, Any]] = deque()

    def __call__(self, batch: Sequence[Any], device: Any = None, padding: Any = None) -> Any:
        """Stack and start the copy; a ValueError if the device is not that of the first call."""
        target = None if device is None else get_device(device)
        if not self._fixed:
            self._device, self._fixed = target, True
        elif target != self._device:
            raise ValueError(f"the device was {self._device} at the first call, now it is {target}")
        if not isinstance(target, TorchDevice) or target.type != "cuda":
            return concat_examples(batch, target, padding)
        return self._transfer(concat_examples(batch, "cpu", padding), target.device)

    def _transfer(self, arrays: Any, device: Any) -> Any:
        import torch

        if self.stream is None:
            self.stream = torch.cuda.Stream(device)
        while len(self._in_flight) >= 2:
            self._in_flight.popleft()[0].synchronize()
        compute = self.compute_stream or torch.cuda.current_stream(device)
        pinned = []

        def copy(tensor: Any) -> Any:
            pinned.append(tensor.pin_memory())
            moved = pinned[-1].to(device, non_blocking=True)
            moved.record_stream(compute)
            return moved

        with torch.cuda.stream(self.stream):
            if isinstance(arrays, tuple):
                result: Any = tuple(copy(tensor) for tensor in arrays)
            elif isinstance(arrays, dict):
                result = {key: copy(tensor) for key, tensor in arrays.items()}
            else:
                result = copy(arrays)
            done = self.stream.record_event()
        compute.wait_event(done)
        self._in_flight.append((done, pinned))
        return result
