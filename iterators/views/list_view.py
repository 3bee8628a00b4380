"""`ListView`: several views side by side, used as one.

Every operation is that of the components, one after another; nothing is joined or summed across
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .view import View, is_array


class ListView(View):
    """Views side by side: several inputs or several targets of one batch.

    Parameters
    ----------
    components : iterable of View
        They may be lists themselves.

    Raises
    ------
    TypeError
        If a component is not a View; its position is named.

    Notes
    -----
    Wherever a view or an element type is expected, one string means the same for every component,
    a list or tuple has one entry for each.  Arrays come and go as lists.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import ClassView, ImageView, ListView
    >>> images = ImageView("bchw", np.zeros((4, 3, 8, 8)))
    >>> both = ListView([images, ClassView("b", np.arange(4))])
    >>> [array.shape for array in both.forward_get(["bf", "bt"], ["float", None])]
    [(4, 192), (4, 1)]
    """

    def __init__(self, components: Iterable[View]) -> None:
        self._components = tuple(components)
        for position, component in enumerate(self._components):
            if not isinstance(component, View):
                raise TypeError(f"component {position} is a {type(component).__name__}, not a View")

    @property
    def components(self) -> tuple[View, ...]:
        """The views, in order."""
        return self._components

    def size(self) -> int:
        """Return the number of components."""
        return len(self._components)

    def __iter__(self) -> Iterator[View]:
        return iter(self._components)

    def _each(self, value: Any, what: str) -> list[Any]:
        """Return one value for every component."""
        if not isinstance(value, (list, tuple)):
            return [value] * self.size()
        return self._listed(value, what)

    def _listed(self, values: Any, what: str) -> list[Any]:
        if not isinstance(values, (list, tuple)):
            raise TypeError(f"{what} must be a list, one for every component, not {type(values)}")
        if len(values) != self.size():
            raise ValueError(f"{len(values)} {what} for {self.size()} components")
        return list(values)

    def _put(self, method: str, view: Any, values: Any, what: str, *more: Any) -> None:
        views, arrays = self._each(view, "views"), self._listed(values, what)
        for component, name, array in zip(self, views, arrays, strict=True):
            getattr(component, method)(name, array, *more)

    def _got(self, method: str, view: Any, dtype: Any) -> list[Any]:
        views, types = self._each(view, "views"), self._each(dtype, "element types")
        pairs = zip(self, views, types, strict=True)
        return [getattr(component, method)(name, kind) for component, name, kind in pairs]

    # -- values and gradients -------------------------------------------------------------------

    def forward_put(self, view: Any, data: Any) -> None:
        self._put("forward_put", view, data, "arrays")

    def forward_get(self, view: Any = "default", dtype: Any = None) -> list[Any]:
        return self._got("forward_get", view, dtype)

    def backward_put(self, view: Any, grad: Any) -> None:
        self._put("backward_put", view, grad, "gradients")

    def backward_get(self, view: Any = None, dtype: Any = None) -> list[Any]:
        return self._got("backward_get", view, dtype)

    @staticmethod
    def _holds_arrays(x: Any) -> bool:
        if isinstance(x, (list, tuple)):
            return any(ListView._holds_arrays(item) for item in x)
        return is_array(x)

    def replace(self, view: Any, data: Any, inplace: bool = False) -> None:
        self._put("replace", view, data, "arrays", inplace)

    def flush(self) -> None:
        """Forget converted copies of all components."""
        for component in self:
            component.flush()

    # -- rows -----------------------------------------------------------------------------------

    def index(self, ids: Any, out: ListView | None = None) -> ListView:
        """Return a list of views with copies of these rows; see `DataView.index`.

        Raises
        ------
        TypeError
            If `out` is not a ListView.
        ValueError
            If `out` has another number of components.
        """
        return self._fill(out, lambda component, target: component.index(ids, out=target))

    def sub(
        self, start: int, stop: int, out: ListView | None = None, share: bool = False
    ) -> ListView:
        return self._fill(
            out, lambda component, target: component.sub(start, stop, out=target, share=share)
        )

    def _fill(self, out: ListView | None, fill: Callable[[View, View | None], View]) -> ListView:
        if out is None:
            return ListView(fill(component, None) for component in self)
        if not isinstance(out, ListView):
            raise TypeError(f"out is a {type(out).__name__}, this is a ListView")
        if out.size() != self.size():
            raise ValueError(f"out has {out.size()} components, this view has {self.size()}")
        for component, target in zip(self, out, strict=True):
            fill(component, target)
        return out

    # -- description ----------------------------------------------------------------------------

    @property
    def view(self) -> list[Any]:
        """Orders of axes of the components."""
        return [component.view for component in self]

    @property
    def input(self) -> list[Any]:
        """Base arrays of the components."""
        return [component.input for component in self]

    def set_input(self, x: Any) -> None:
        for component, array in zip(self, self._listed(x, "arrays"), strict=True):
            component.set_input(array)

    def n_sample(self) -> int:
        """Return the number of rows of the first component; 0 without components."""
        return self._components[0].n_sample() if self._components else 0

    def sample_size(self) -> int:
        """Return the number of elements of one row, all components together."""
        return sum(component.sample_size() for component in self)

    def transpose(self, view: Any) -> list[Any]:
        """Return the conversions of the bases to other orders of their axes."""
        views = self._each(view, "views")
        return [component.transpose(name) for component, name in zip(self, views, strict=True)]

    # -- life -----------------------------------------------------------------------------------

    def to(self, dtype: Any) -> ListView:
        for component, kind in zip(self, self._each(dtype, "element types"), strict=True):
            component.to(kind)
        return self

    def clone(self) -> ListView:
        """Return a list of clones."""
        return ListView(component.clone() for component in self)

    def __repr__(self) -> str:
        return f"ListView([{', '.join(map(repr, self))}])"
