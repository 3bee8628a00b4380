"""Functions, augmenters and iterators of this package, so that they give `NDArray`.

The classes and functions stay what they are: these are subclasses and wrappers that look at results
only.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from ...core.batch import DataBatch
from ...mx_image import ImageAugmenter
from ...providers.form_batches import FormBatch
from .ndarray.array import as_nd

__all__ = ["ToNDArray", "as_giving", "delivering", "giving", "step_giving", "with_steps"]

#: Classes of steps that give NDArrays, by the classes of `iterators.mx_image`.
_GIVING: dict[type[Any], type[Any]] = {}


def giving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose results are NDArrays instead of NumPy arrays."""

    @functools.wraps(function)
    def call(*values: Any, **keywords: Any) -> Any:
        return as_nd(function(*values, **keywords))

    return call


def step_giving(kind: type[Any], module: str) -> Any:
    """Return an augmenter class that is called with images and gives them as NDArrays."""

    def called(self: Any, src: Any, *label: Any) -> Any:
        result = kind.__call__(self, src, *label)
        return (as_nd(result[0]), *result[1:]) if label else as_nd(result)

    _GIVING[kind] = _derived(kind, module, {"__call__": called})
    return _GIVING[kind]


def as_giving(step: Any) -> Any:
    """Make a step of `iterators.mx_image` one that gives NDArrays."""
    step.__class__ = _GIVING.get(type(step), type(step))
    return step


def with_steps(kind: type[Any], first: Any, module: str) -> Any:
    """Return an iterator class whose functions of a script are called with NDArrays."""

    def init(self: Any, *values: Any, **keywords: Any) -> None:
        steps = keywords.get("aug_list")
        if isinstance(steps, list | tuple):
            keywords["aug_list"] = [first, *steps]
        kind.__init__(self, *values, **keywords)  # type: ignore[misc]

    return delivering(kind, module, __init__=functools.wraps(kind.__init__)(init))  # type: ignore[misc]


def delivering(kind: type[Any], module: str, **members: Any) -> Any:
    """Return a provider class whose batches hold NDArrays."""

    def delivered(self: Any) -> Any:
        return batch_of_arrays(kind.next(self))  # type: ignore[attr-defined]

    members["next"] = functools.wraps(kind.next)(delivered)  # type: ignore[attr-defined]
    return _derived(kind, module, members)


def batch_of_arrays(batch: Any) -> Any:
    """Make the arrays of a batch NDArrays, unless it has a form that was asked for."""
    if isinstance(batch, DataBatch) and not isinstance(batch, FormBatch):
        batch.data, batch.label = as_nd(batch.data), as_nd(batch.label)
    return batch


class ToNDArray(ImageAugmenter):
    """The step in front of functions of a script, which take an NDArray."""

    def __call__(self, src: Any) -> Any:
        """Return the image as an NDArray."""
        return as_nd(src)


def without_examples(kind: type[Any]) -> str:
    """Return the docstring of a class up to its examples, which are of other arrays."""
    return re.split(r"\n *Examples\n", kind.__doc__ or "")[0]


def _derived(kind: Any, module: str, members: dict[str, Any]) -> Any:
    """Return a subclass of the same name in a module, so that it can be pickled."""
    about = {"__module__": module, "__doc__": without_examples(kind), "__qualname__": kind.__name__}
    return type(kind)(kind.__name__, (kind,), {**about, **members})
