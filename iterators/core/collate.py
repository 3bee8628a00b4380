"""`concat_examples`: the only function that makes a batch of examples.

It stacks and pads, and moves the result to a device if one is given.  It never reads a dataset and
never changes an element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .backend import is_tensor
from .device import get_device, to_device
from .joinable import joined

__all__ = ["HasParts", "SeesData", "concat_examples"]


class SeesData:
    """Base class of examples that stand for data, which they give when they are called."""

    __slots__ = ()

    def __call__(self) -> Any:
        """Return the data."""
        raise NotImplementedError


@runtime_checkable
class HasParts(Protocol):
    """A data set whose examples are tuples, with a name for each entry."""

    def example_parts(self) -> Mapping[str, tuple[int, Mapping[str, Any]]]:
        """Return by name where a part stands in an example, and what is known of it."""


def concat_examples(batch: Sequence[Any], device: Any = None, padding: Any = None) -> Any:
    """Stack examples along a new first axis.

    Parameters
    ----------
    batch : sequence of tuple, dict, array or number
        The first example decides the form.  Tuples and dicts are stacked entry by entry; anything
        else, a tuple inside a tuple too, becomes one array.  A `Sample`, as an example or as an
        entry of one, counts as its data.
    device : None, int, str or device
        Device of the result, as for `to_device`.  None leaves it where the examples are.
    padding : scalar, tuple or dict, optional
        None: shapes must agree.  A number: examples of different shapes are put into the origin
        corner of an array as large as the largest of them, and the rest has this value.  A tuple
        has one value for each entry of tuples, a dict one for each key of dicts.

    Returns
    -------
    array, tuple of array or dict of array
        NumPy arrays for arrays and built-in types, torch tensors for torch tensors.  Element types
        are promoted as by NumPy; with padding the first example's is taken.

    Raises
    ------
    ValueError
        If there is no example, or shapes do not agree.
    IndexError, KeyError
        If an example, or `padding`, lacks an entry that the first example has.  Further entries of
        later examples are ignored.

    Examples
    --------
    >>> concat_examples([([1, 2], 0), ([3, 4], 1)])
    (array([[1, 2],
           [3, 4]]), array([0, 1]))
    >>> concat_examples([{"x": np.ones(2)}, {"x": np.zeros(1)}], padding={"x": -1})
    {'x': array([[ 1.,  1.],
           [ 0., -1.]])}
    """
    if len(batch) == 0:
        raise ValueError("there is no example to stack: the batch is empty")
    device = None if device is None else get_device(device)  # found once for all entries
    batch = _data_of(batch)
    first = batch[0]
    if isinstance(first, tuple):
        paddings = padding if isinstance(padding, tuple) else (padding,) * len(first)
        return tuple(
            [
                _moved(_stack(column, paddings[i]), device)
                for i, column in enumerate(_columns(batch, len(first)))
            ]
        )
    if isinstance(first, dict):
        of_key = padding if isinstance(padding, dict) else dict.fromkeys(first, padding)
        return {
            key: _moved(_stack([example[key] for example in batch], of_key[key]), device)
            for key in first
        }
    return _moved(_stack(batch, padding), device)


def _columns(batch: Sequence[Any], width: int) -> Sequence[Sequence[Any]]:
    """Return tuples of at least `width` entries as columns, one for each entry."""
    try:
        # The fast way; it makes tuples, over which NumPy walks as fast as over lists.
        return list(zip(*batch, strict=True))
    except ValueError:
        return [[example[i] for example in batch] for i in range(width)]


def _data_of(examples: Sequence[Any]) -> Sequence[Any]:
    """Return the data of examples that are called for it; other examples as they are."""
    if not isinstance(examples[0], SeesData):
        return examples
    return [example() if isinstance(example, SeesData) else example for example in examples]


def _stack(column: Sequence[Any], padding: Any) -> Any:
    column = _data_of(column)
    first = column[0]
    if is_tensor(first):
        return _stack_tensors(column, padding)
    if padding is None or not isinstance(first, np.ndarray):
        # Examples that arrived from another process side by side are one array already.
        together = joined(column) if type(first) is np.ndarray else None
        if together is not None:
            return together
        # np.array stacks small arrays several times faster than np.stack and np.concatenate.
        try:
            return np.array(column)
        except ValueError:
            raise _disagreement(column) from None
    shape = _largest([example.shape for example in column])
    result = np.full((len(column), *shape), padding, first.dtype)
    for i, example in enumerate(column):
        corner: Any = tuple(slice(0, size) for size in example.shape)
        result[(i, *corner)] = example
    return result


def _stack_tensors(column: Sequence[Any], padding: Any) -> Any:
    import torch

    if padding is None:
        try:
            return torch.stack(list(column))
        except RuntimeError:
            raise _disagreement(column) from None
    shape = _largest([tuple(example.shape) for example in column])
    result = torch.full(
        (len(column), *shape), padding, dtype=column[0].dtype, device=column[0].device
    )
    for i, example in enumerate(column):
        corner: Any = tuple(slice(0, size) for size in example.shape)
        result[(i, *corner)] = example
    return result


def _largest(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    if len(set(map(len, shapes))) > 1:
        raise ValueError(f"examples of {shapes[0]} and others differ in their number of axes")
    return tuple(map(max, zip(*shapes, strict=True)))


def _disagreement(column: Sequence[Any]) -> ValueError:
    shapes = sorted({np.shape(example) for example in column if hasattr(example, "shape")})
    if shapes:
        return ValueError(f"examples differ in shape, {shapes[:4]}: give padding")
    return ValueError("lists of different lengths cannot be stacked: make arrays and give padding")


def _moved(array: Any, device: Any) -> Any:
    return array if device is None else to_device(device, array)
