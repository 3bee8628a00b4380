"""`concat_examples`: the only function that makes a batch of examples.

It stacks and pads, and moves the result to a device if one is given.  It never reads a dataset and
never changes an element.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .backend import is_tensor
from .device import get_device, to_device
from .shared_arrays import joined

#: Numbers of channels that images have, on their first or last axis.
CHANNELS = {1, 3, 4}


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
        has one value for each entry of tuples, a dict one for each key of dicts.  Examples need
        the same number of axes; images of 1, 3 and 4 channels together are warned of.

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
                _moved(_stack(column, paddings[i], f"entry {i} of "), device)
                for i, column in enumerate(_columns(batch, len(first)))
            ]
        )
    if isinstance(first, dict):
        of_key = padding if isinstance(padding, dict) else dict.fromkeys(first, padding)
        return {
            key: _moved(
                _stack([example[key] for example in batch], of_key[key], f"{key!r} of "), device
            )
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


def _stack(column: Sequence[Any], padding: Any, part: str = "") -> Any:
    """Make one array of what the examples have; `part` says what that is, for errors."""
    column = _data_of(column)
    first = column[0]
    if is_tensor(first):
        return _stack_tensors(column, padding, part)
    if padding is None or not any(isinstance(example, np.ndarray) for example in column):
        # Examples that arrived from another process side by side are one array already.
        together = joined(column) if type(first) is np.ndarray else None
        if together is not None:
            return together
        # np.array stacks small arrays several times faster than np.stack and np.concatenate.
        try:
            return np.array(column)
        except ValueError:
            raise _disagreement(column, padding, part) from None
    shapes = [np.shape(example) for example in column]
    dtype = next(example.dtype for example in column if isinstance(example, np.ndarray))
    result = np.full((len(column), *_largest(shapes, part)), padding, dtype)
    for i, example in enumerate(column):
        corner: Any = tuple(slice(0, size) for size in shapes[i])
        result[(i, *corner)] = example
    return result


def _stack_tensors(column: Sequence[Any], padding: Any, part: str) -> Any:
    """Make one tensor of those of the examples."""
    import torch

    if padding is None:
        try:
            return torch.stack(list(column))
        except RuntimeError:
            raise _disagreement(column, padding, part) from None
    shapes = [tuple(np.shape(example)) for example in column]
    result = torch.full(
        (len(column), *_largest(shapes, part)),
        padding,
        dtype=column[0].dtype,
        device=column[0].device,
    )
    for i, example in enumerate(column):
        corner: Any = tuple(slice(0, size) for size in shapes[i])
        result[(i, *corner)] = example
    return result


def _largest(shapes: list[tuple[int, ...]], part: str) -> tuple[int, ...]:
    """Find the shape that all shapes fit into; one with other axes is an error."""
    first = shapes[0]
    for i, shape in enumerate(shapes):
        if len(shape) != len(first):
            raise ValueError(
                f"{part}example {i} has {_axes(shape)}, {part}example 0 has {_axes(first)}: "
                "padding makes axes longer, and adds none"
            )
    largest = tuple(map(max, zip(*shapes, strict=True)))
    for axis in {0, 2} if len(first) == 3 else ():
        counts = [shape[axis] for shape in shapes]
        if len(set(counts)) == 1 or not CHANNELS.issuperset(counts):
            continue
        i = counts.index(next(count for count in counts if count != counts[0]))
        warnings.warn(
            f"{part}example {i} has {counts[i]} channels, {part}example 0 has {counts[0]}: those "
            "that one lacks have the value of padding; decode all images to the same channels",
            UserWarning,
            stacklevel=4,
        )
    return largest


def _axes(shape: tuple[int, ...]) -> str:
    """Describe a shape."""
    return f"the shape {tuple(shape)}" if shape else "a single number"


def _disagreement(column: Sequence[Any], padding: Any, part: str) -> ValueError:
    """Say which examples cannot be stacked, and what would help."""
    shapes = [np.shape(example) for example in column if hasattr(example, "shape")]
    if len(shapes) == len(column):
        i = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0)
        remedy = ": give padding" if len(shapes[i]) == len(shapes[0]) else ""
        return ValueError(
            f"examples differ in shape: {part}example {i} has {_axes(shapes[i])}, {part}example 0 "
            f"has {_axes(shapes[0])}{remedy}"
        )
    remedy = "make arrays of them" + ("" if padding is not None else " and give padding")
    return ValueError(f"{part}examples: lists of different lengths cannot be stacked: {remedy}")


def _moved(array: Any, device: Any) -> Any:
    return array if device is None else to_device(device, array)
