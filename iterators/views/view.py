"""`View`: the base of all views, whether they hold one array or a list of views.

It defines the operations and how they combine.  It holds no array and converts none.  `Carry` has
views and objects that travel along with a batch, besides inputs and targets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from recordio.keywords.checks import integer

from ..core.backend import is_sparse, is_tensor


def is_array(x: Any) -> bool:
    """Return whether `x` is an array and not the name of a type."""
    return isinstance(x, np.ndarray) or is_tensor(x) or is_sparse(x)


def _named(dtype: str) -> Callable[[Any], Any]:
    """Make the method of a view that converts to an element type."""

    def convert(self: Any) -> Any:
        return self.to(dtype)

    convert.__doc__ = f"Convert to {dtype}; see `View.to`."
    return convert


class _TypeNames:
    """The words of Torch 7 for converting a view; apart, so that `int` stays `int` in `View`."""

    def to(self, dtype: Any) -> Any:
        raise TypeError("only views can be converted")

    byte: Callable[..., Any] = _named("uint8")
    char: Callable[..., Any] = _named("int8")
    short: Callable[..., Any] = _named("int16")
    int: Callable[..., Any] = _named("int32")
    long: Callable[..., Any] = _named("int64")
    half: Callable[..., Any] = _named("float16")
    float: Callable[..., Any] = _named("float32")
    double: Callable[..., Any] = _named("float64")
    cuda: Callable[..., Any] = _named("cuda")

    def type(self, dtype: Any) -> Any:
        """Convert; dp's name for `View.to`."""
        return self.to(dtype)


class View(_TypeNames, ABC):
    """A batch that can be read in many forms, and collects the gradients of all of them.

    Abstract; `DataView`, `ImageView`, `ClassView` and `SequenceView` hold one array each,
    `ListView` holds other views.

    One producer calls `forward_put` and `backward_get`; any number of consumers call `forward_get`
    and `backward_put`.
    """

    # -- values ---------------------------------------------------------------------------------

    @abstractmethod
    def forward_put(self, view: Any, data: Any) -> None:
        """Replace the base array; all converted copies and gradients are forgotten."""

    @abstractmethod
    def forward_get(self, view: Any = "default", dtype: Any = None) -> Any:
        """Return the values in another form."""

    def forward(self, view: Any = "default", data_or_dtype: Any = None) -> Any:
        """Call `forward_put` if the second argument is an array, else `forward_get`."""
        if self._holds_arrays(data_or_dtype):
            return self.forward_put(view, data_or_dtype)
        return self.forward_get(view, data_or_dtype)

    @abstractmethod
    def replace(self, view: Any, data: Any, inplace: bool = False) -> None:
        """Replace the base by values in any form."""

    @abstractmethod
    def flush(self) -> None:
        """Forget converted copies; the base and the recorded gradients stay."""

    # -- gradients ------------------------------------------------------------------------------

    @abstractmethod
    def backward_put(self, view: Any, grad: Any) -> None:
        """Record a gradient with respect to one form of the values."""

    @abstractmethod
    def backward_get(self, view: Any = None, dtype: Any = None) -> Any:
        """Return the sum of all recorded gradients, with respect to the base."""

    def backward(self, view: Any = None, grad_or_dtype: Any = None) -> Any:
        """Call `backward_put` if the second argument is an array, else `backward_get`."""
        if self._holds_arrays(grad_or_dtype):
            return self.backward_put(view, grad_or_dtype)
        return self.backward_get(view, grad_or_dtype)

    @staticmethod
    def _holds_arrays(x: Any) -> bool:
        return is_array(x)

    # -- rows -----------------------------------------------------------------------------------

    @abstractmethod
    def index(self, ids: Any, out: Any = None) -> Any:
        """Return a view of the same kind with copies of these rows."""

    @abstractmethod
    def sub(self, start: int, stop: int, out: Any = None, share: bool = False) -> Any:
        """Return a view of the same kind with rows ``[start, stop)``."""

    def iter_sub(self, n: int, share: bool = False, reuse: bool = False) -> Iterator[Any]:
        """Yield consecutive pieces of `n` rows; the last one may be short.

        Parameters
        ----------
        n : int
            Rows of a piece, at least 1.
        share : bool
            Pieces are windows on the memory of this view.
        reuse : bool
            The same view is filled again for every piece.

        Yields
        ------
        stop : int
            Number of rows up to the end of this piece.
        view : View

        Examples
        --------
        >>> import numpy as np
        >>> from iterators import DataView
        >>> view = DataView("bf", np.zeros((5, 2)))
        >>> [(stop, len(piece)) for stop, piece in view.iter_sub(2)]
        [(2, 2), (4, 2), (5, 1)]
        """
        n = integer("n", n, low=1)
        size, piece = self.n_sample(), None
        for start in range(0, size, n):
            stop = min(start + n, size)
            piece = self.sub(start, stop, out=piece if reuse else None, share=share)
            yield stop, piece

    # -- description ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def view(self) -> Any:
        """Order of axes of the base; empty before the first `forward_put`."""

    @property
    @abstractmethod
    def input(self) -> Any:
        """The base array; None before the first `forward_put`."""

    @abstractmethod
    def set_input(self, x: Any) -> None:
        """Exchange the base without any check and without forgetting converted copies.

        Only for data of the same order of axes, shape and element type.
        """

    @abstractmethod
    def n_sample(self) -> int:
        """Return the number of rows; 0 before the first `forward_put`."""

    def __len__(self) -> int:
        return self.n_sample()

    @abstractmethod
    def sample_size(self) -> int:
        """Return the number of elements of one row."""

    @abstractmethod
    def transpose(self, view: Any) -> Any:
        """Return the conversion of the base to another order of its axes."""

    # -- life -----------------------------------------------------------------------------------

    @abstractmethod
    def to(self, dtype: Any) -> Any:
        """Convert the base to another element type or device, forget converted copies, return self.

        `dtype` is anything that `forward_get` accepts.  Recorded gradients stay.
        """

    @abstractmethod
    def clone(self) -> Any:
        """Return a view of the same kind with a copy of the base, without gradients."""

    def __iter__(self) -> Iterator[View]:
        """Iterate over the views of this one: itself, or the components of a `ListView`."""
        yield self


class Carry:
    """Objects and views by name, handed from one layer to the next beside a batch.

    Parameters
    ----------
    obj_store : mapping, optional
        Objects, which stay as they are when rows are taken.
    view_store : mapping of View, optional
        Views, of which the same rows are taken.

    Raises
    ------
    TypeError
        If a value of `view_store` is not a `View`.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import DataView
    >>> carry = Carry()
    >>> carry.put_obj("epoch", 3)
    >>> carry.put_view("weights", DataView("b", np.array([0.5, 1.0, 2.0])))
    >>> part = carry.index([2, 0])
    >>> part.get_obj("epoch"), part.get_view("weights").forward_get("b").tolist()
    (3, [2.0, 0.5])
    """

    def __init__(
        self,
        obj_store: Mapping[Any, Any] | None = None,
        view_store: Mapping[Any, View] | None = None,
    ) -> None:
        self._objects = dict(obj_store or {})
        self._views: dict[Any, View] = {}
        for key, view in (view_store or {}).items():
            self.put_view(key, view)

    def put_obj(self, key: Any, value: Any) -> None:
        """Keep an object under a name."""
        self._objects[key] = value

    def get_obj(self, key: Any) -> Any:
        """Return the object of that name, or None."""
        return self._objects.get(key)

    def put_view(self, key: Any, view: View) -> None:
        """Keep a view under a name.

        Raises
        ------
        TypeError
            If it is not a `View`.
        """
        if not isinstance(view, View):
            raise TypeError(f"{key!r} is a {type(view).__name__}, no View: put_obj keeps objects")
        self._views[key] = view

    def get_view(self, key: Any) -> View | None:
        """Return the view of that name, or None."""
        return self._views.get(key)

    def sub(self, start: int, stop: int) -> Carry:
        """Return the same objects, and copies of rows ``[start, stop)`` of all views."""
        return Carry(self._objects, {k: view.sub(start, stop) for k, view in self._views.items()})

    def index(self, ids: Any) -> Carry:
        """Return the same objects, and copies of these rows of all views."""
        return Carry(self._objects, {key: view.index(ids) for key, view in self._views.items()})

    def clone(self) -> Carry:
        """Return another `Carry` with the same objects and views."""
        return Carry(self._objects, self._views)

    def __repr__(self) -> str:
        return f"Carry({list(self._objects)}, {list(self._views)})"
