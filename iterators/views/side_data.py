"""`Carry` of dp: objects and views that travel along with a batch, besides inputs and targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .view import View

__all__ = ["Carry"]


class Carry:
    """Objects and views by name, handed on beside a batch.

    Parameters
    ----------
    obj_store : mapping, optional
        Objects, which stay as they are when rows are taken.
    view_store : mapping of View, optional
        Views, of which the same rows are taken.

    Raises
    ------
    TypeError
        If something among the views is none.

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
            If it is none.
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
        """Return another one with the same objects and views."""
        return Carry(self._objects, self._views)

    def __repr__(self) -> str:
        return f"Carry({list(self._objects)}, {list(self._views)})"
