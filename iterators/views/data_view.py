"""`DataView`: one array, handed out in many forms, collecting gradients for all of them.

It remembers which forms were handed out and which gradients to sum; `view_layouts` gives the layout
of a form, and `iterators.core.layout` does the conversions and their adjoints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ..core.layout import Layout, LayoutPlan, plan
from . import batch_rows as rows
from . import view_layouts as forms
from .kinds import Kind, convert, kind_of, moved, requested_kind
from .view import View

Self = TypeVar("Self", bound="DataView")


def to_form(name: str) -> Callable[[Any], LayoutPlan]:
    """Make the method of a view that returns the conversion of its base to a form."""

    def conversion(self: Any) -> LayoutPlan:
        return self._plan(self._name(name))

    conversion.__name__ = name
    conversion.__doc__ = f"Return the conversion of the base to ``{name}``, with its `adjoint`."
    return conversion


class DataView(View):
    """Rows of features, or anything else with a batch axis.

    Parameters
    ----------
    view : str, optional
        Order of the axes of `data`, one letter each, the batch being ``b``: ``f`` features,
        ``t`` class or slot, ``c`` channel, ``h`` height, ``w`` width or position in a sequence,
        ``d`` depth.  Other letters are allowed here, and refused by the subclasses.
    data : array, optional
        NumPy array, torch tensor, or - with two axes - scipy sparse matrix.  With both given,
        `forward_put` is called.

    Notes
    -----
    Offered forms: ``default`` (the base as it is), ``bf`` (everything but the batch flattened) and
    ``b`` (the only feature of each row).  To flatten, the batch changes places with the first axis;
    the others keep their order, so ``chwb`` gives features in the order h, w, c (rule of dp).

    A form is computed once and handed out as the same object until the next `forward_put`,
    `replace` or `flush`.  It may share memory with the base: write through `replace` only.
    Tensors stay part of torch's graph.

    Examples
    --------
    >>> import numpy as np
    >>> view = DataView("bf", np.arange(6.0).reshape(2, 3))
    >>> view.forward_get("bf", "float").dtype, view.n_sample(), view.sample_size()
    (dtype('float32'), 2, 3)
    >>> view.backward_put("bf", np.ones((2, 3), np.float32))
    >>> view.backward_put("bf", np.ones((2, 3)))
    >>> view.backward_get().tolist()
    [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
    """

    #: Axes that a base may have; any letters if there are none here.
    letters: ClassVar[str] = ""
    #: Forms besides the order of the base itself.
    offered: ClassVar[tuple[str, ...]] = ("default", "bf", "b")

    def __init__(self, view: str | None = None, data: Any = None) -> None:
        self._view = ""
        self._input: Any = None
        self._kind: Kind | None = None
        self._layout: Layout | None = None
        self._plans: dict[str, LayoutPlan] = {}
        self._handed_out: dict[tuple[str, Kind], Any] = {}
        self._gradients: list[tuple[str, Any]] = []
        #: Forms that gradients may refer to; they outlive a batch.
        self._requested: set[tuple[str, str]] = set()
        if (view is None) != (data is None):
            raise TypeError(f"{type(self).__name__} needs both, view and data, or neither")
        if view is not None:
            self.forward_put(view, data)

    # -- values ---------------------------------------------------------------------------------

    def forward_put(self, view: str, data: Any) -> None:
        """Replace the base array; all converted copies and gradients are forgotten.

        Parameters
        ----------
        view : str
            Order of the axes of `data`; ``"default"`` for that of the previous base.
        data : array
            Fully expanded: one axis for every letter.  It is kept, not copied.

        Raises
        ------
        ValueError
            If the string is no order of axes, lacks ``b``, or has another length than `data` has
            axes.
        TypeError
            If `data` is not an array.
        """
        kind = kind_of(data)
        view = self._axes(view)
        if len(view) != data.ndim:
            raise ValueError(f"view {view!r} names {len(view)} axes, the data have {data.ndim}")
        sizes = {axis: n for axis, n in zip(view, data.shape, strict=True) if axis != "b"}
        layout = Layout(view, **sizes)
        if view != self._view:
            self._requested.clear()
        if layout != self._layout:
            self._plans.clear()
        self._view, self._input, self._kind, self._layout = view, data, kind, layout
        self._gradients.clear()
        self._handed_out.clear()
        self._handed_out[view, kind] = data

    def _axes(self, view: str) -> str:
        """Return the order of axes that a string names, checked."""
        if not isinstance(view, str):
            raise TypeError(f"a view is a string such as 'bhwc', not {view!r}")
        if view == "default" and self._view:
            return self._view
        if Layout(view).axes != view:
            raise ValueError(f"view {view!r}: axes are lower-case letters, {Layout(view).axes!r}")
        unknown = [axis for axis in view if self.letters and axis not in self.letters]
        if unknown:
            raise ValueError(
                f"view {view!r}: {type(self).__name__} knows no axis {unknown[0]!r}, only "
                f"{', '.join(self.letters)}; a DataView may have any"
            )
        self.find_axis("b", view)
        return view

    def forward_get(self, view: str = "default", dtype: Any = None) -> Any:
        """Return the values in another form.

        Parameters
        ----------
        view : str
            One of `offered`, or the order of the base.
        dtype : None, str, numpy.dtype, type or torch.dtype
            None for the element type of the base; else a name such as ``"float32"``, ``"float"``,
            ``"torch.DoubleTensor"``, ``"float16@cuda:1"`` or ``"cuda"``.  A device, or a
            `torch.dtype`, asks for a torch tensor; anything else keeps the library.

        Returns
        -------
        array
            The same object for the same request until the next `forward_put`, `replace` or `flush`;
            the base itself for its own order and type.

        Raises
        ------
        RuntimeError
            Before the first `forward_put`.
        ValueError
            If this class does not offer the form, the base cannot be brought into it, or `dtype` is
            not understood.

        Examples
        --------
        >>> import numpy as np
        >>> from iterators import ImageView
        >>> view = ImageView("bchw", np.arange(12).reshape(1, 3, 2, 2))
        >>> view.forward_get("bhwc").reshape(-1).tolist()
        [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
        >>> view.forward_get("bf", "float") is view.forward_get("bf", np.float32)
        True
        """
        base, base_kind = self._base()
        name = self._name(view)
        kind = requested_kind(dtype, base_kind)
        if (name, kind) not in self._handed_out:
            self._handed_out[name, kind] = self._convert(name, kind)
        self._requested.add((name, kind.dtype))
        # The base is looked up and not remembered, because set_input exchanges it.
        own = name == self._view and kind == base_kind
        return base if own else self._handed_out[name, kind]

    def _convert(self, name: str, kind: Kind) -> Any:
        base, base_kind = self._base()
        if kind[1:] == base_kind[1:]:
            return self._plan(name)(base, kind.dtype)
        return convert(self._plan(name)(base), kind)

    def _base(self) -> tuple[Any, Kind]:
        if self._kind is None:
            raise RuntimeError(f"this {type(self).__name__} has no data: call forward_put first")
        return self._input, self._kind

    def _name(self, view: str) -> str:
        """Return the form that is meant, checked against what this class offers."""
        self._base()
        if view in ("default", self._view):
            return self._view
        if view not in self.offered:
            offered = ", ".join(dict.fromkeys([*self.offered, self._view]))
            raise ValueError(f"{type(self).__name__} does not offer {view!r}; it offers {offered}")
        return view

    # -- conversions ----------------------------------------------------------------------------

    def _plan(self, name: str) -> LayoutPlan:
        """Return the conversion of the base to a form, remembered as long as it applies."""
        if name not in self._plans:
            self._base()
            self._plans[name] = plan(*self._layouts(name))
        return self._plans[name]

    def _layouts(self, name: str) -> tuple[Layout, Layout]:
        """Return the layouts of the base and of a form."""
        assert self._layout is not None
        if name == self._view:
            return self._layout, self._layout
        if name == "bf":
            return forms.flat(self._layout)
        if name == "b":
            return forms.only_column(self._layout)
        return forms.permuted(self._layout, name)

    def transpose(self, view: str) -> LayoutPlan:
        """Return the conversion of the base to another order of its axes.

        Raises
        ------
        ValueError
            If the axes are not those of the base.

        Examples
        --------
        >>> import numpy as np
        >>> from iterators import ImageView
        >>> ImageView("bhwc", np.zeros((8, 4, 5, 3))).transpose("bchw")(np.ones((2, 4, 5, 3))).shape
        (2, 3, 4, 5)
        """
        self._base()
        assert self._layout is not None
        return plan(*forms.permuted(self._layout, view))

    default: Callable[..., LayoutPlan] = to_form("default")
    bf: Callable[..., LayoutPlan] = to_form("bf")
    b: Callable[..., LayoutPlan] = to_form("b")

    # -- gradients ------------------------------------------------------------------------------

    def backward_put(self, view: str, grad: Any) -> None:
        """Record a gradient with respect to one form of the values.

        Parameters
        ----------
        view : str
            The form.
        grad : array
            In the form and element type in which `forward_get` returned the values.

        Raises
        ------
        RuntimeError
            If that form was never requested in that element type.  A request for an earlier batch
            counts as long as the order of the base stays the same.
        ValueError
            If there is no such form, or the gradient has another shape.
        """
        name = self._name("default" if view is None else view)
        conversion = self._plan(name)
        dtype = kind_of(grad).dtype
        own = (self._view, self._base()[1].dtype)
        if (name, dtype) != own and (name, dtype) not in self._requested:
            raise RuntimeError(
                f"a gradient for {name!r} as {dtype}, which was never requested from forward_get"
            )
        expected = conversion.dst.shape(self.n_sample())
        if tuple(grad.shape) != expected:
            raise ValueError(
                f"a gradient for {name!r} has shape {expected}, not {tuple(grad.shape)}"
            )
        self._gradients.append((name, grad))

    def backward_get(self, view: str | None = None, dtype: Any = None) -> Any:
        """Return the sum of all recorded gradients, in the form, type and library of the base.

        Returns
        -------
        array
            A new one at every call; the gradients stay until the next `forward_put`.

        Raises
        ------
        RuntimeError
            If no gradient was recorded.
        ValueError
            If another form or element type than that of the base is requested.

        Examples
        --------
        >>> import numpy as np
        >>> from iterators import ClassView
        >>> view = ClassView("bt", np.array([[4.0, 2.0], [3.0, 1.0]]))
        >>> primary = view.forward_get("b")
        >>> view.backward_put("b", np.ones(2))
        >>> view.backward_get().tolist()
        [[1.0, 0.0], [1.0, 0.0]]
        """
        _, kind = self._base()
        if view is not None and self._name(view) != self._view:
            raise ValueError(f"gradients are summed in the form {self._view!r}, not {view!r}")
        if dtype is not None and requested_kind(dtype, kind) != kind:
            raise ValueError(f"gradients are summed as {kind.dtype}, the base is; not as {dtype!r}")
        if not self._gradients:
            raise RuntimeError("there is no gradient: call backward_put first")
        pieces = (
            self._plan(name).adjoint(moved(grad, kind), kind.dtype)
            for name, grad in self._gradients
        )
        total = next(pieces)
        if len(self._gradients) == 1:
            return rows.copy(total)  # it may be the very memory of the consumer's gradient
        total = total + next(pieces)
        for piece in pieces:
            total += piece
        return total

    # -- replacement ----------------------------------------------------------------------------

    def replace(self, view: str, data: Any, inplace: bool = False) -> None:
        """Replace the base by values in any form; it keeps its order of axes and element type.

        Parameters
        ----------
        view : str
            Form of `data`.
        data : array
            Any element type; the number of rows may differ from that of the base.
        inplace : bool
            Write into the memory of the base instead of exchanging it.

        Raises
        ------
        ValueError
            If the form does not hold all of the base, as ``b`` of two classes, or `data` have
            another shape.

        Examples
        --------
        >>> import numpy as np
        >>> from iterators import ImageView
        >>> view = ImageView("bchw", np.zeros((2, 3, 4, 4)))
        >>> view.replace("bf", view.forward_get("bf") + 1)
        >>> view.input.shape, view.input.mean()
        ((2, 3, 4, 4), np.float64(1.0))
        """
        base, kind = self._base()
        name = self._name(view)
        conversion = self._plan(name)
        if not conversion.lossless:
            raise ValueError(f"{name!r} does not hold all of a base of {self._view!r}")
        count = data.shape[conversion.dst.axis("b")] if data.ndim == len(name) else len(self)
        expected = conversion.dst.shape(count)
        if tuple(data.shape) != expected:
            raise ValueError(f"{name!r} has shape {expected}, not {tuple(data.shape)}")
        data = conversion.adjoint(moved(data, kind), kind.dtype)
        if inplace:
            rows.assign(base, data)
            data = base
        self.forward_put(self._view, data)

    def flush(self) -> None:
        self._handed_out.clear()
        self._plans.clear()

    # -- rows -----------------------------------------------------------------------------------

    def index(self: Self, ids: Any, out: Self | None = None) -> Self:
        """Return a view of the same class with copies of these rows.

        Parameters
        ----------
        ids : array_like of int or of bool
            Row numbers in any order, repeats allowed, negative ones from the end; or a mask.
        out : View, optional
            Filled and returned instead of a new view; its memory is used again if it fits.

        Raises
        ------
        TypeError
            If `out` is of another class.
        ValueError
            If `out` has another order of axes, or is this view.
        IndexError
            If a row does not exist.

        Examples
        --------
        >>> import numpy as np
        >>> DataView("bf", np.arange(6).reshape(3, 2)).index([2, 0, 2]).input.tolist()
        [[4, 5], [0, 1], [4, 5]]
        """
        self._check_out(out)
        return self._fill(out, rows.row_numbers(ids, self.n_sample()))

    def sub(
        self: Self, start: int, stop: int, out: Self | None = None, share: bool = False
    ) -> Self:
        """Return a view of the same class with rows ``[start, stop)``.

        Parameters
        ----------
        start, stop : int
            ``0 <= start <= stop <= n_sample()``.
        out : View, optional
            As for `index`.
        share : bool
            Do not copy: both views share memory, so that writing through one changes the other.

        Examples
        --------
        >>> import numpy as np
        >>> view = DataView("fb", np.arange(6).reshape(2, 3))
        >>> view.sub(1, 3).input.tolist()
        [[1, 2], [4, 5]]
        """
        self._check_out(out)
        piece = slice(*rows.row_range(start, stop, self.n_sample()))
        if not share:
            return self._fill(out, piece)
        result = self._like(out)
        window = rows.window(self._input, self.find_axis("b"), piece.start, piece.stop)
        result.forward_put(self._view, window)
        return result

    def _check_out(self, out: Any) -> None:
        self._base()
        if out is None:
            return
        if type(out) is not type(self):
            raise TypeError(f"out is a {type(out).__name__}, this is a {type(self).__name__}")
        if out is self:
            raise ValueError("out must be another view than the one that is read")
        if out.view and out.view != self._view:
            raise ValueError(f"out has axes {out.view!r}, this view has {self._view!r}")

    def _fill(self: Self, out: Self | None, which: Any) -> Self:
        result = self._like(out)
        axis = self.find_axis("b")
        result.forward_put(self._view, rows.take(self._input, axis, which, result._input))
        return result

    def _like(self: Self, out: Self | None = None) -> Self:
        """Return `out` or a new view, described as this one is."""
        return type(self)() if out is None else out

    # -- description ----------------------------------------------------------------------------

    @property
    def view(self) -> str:
        """Order of axes of the base; ``""`` before the first `forward_put`."""
        return self._view

    @property
    def input(self) -> Any:
        return self._input

    def set_input(self, x: Any) -> None:
        self._base()
        self._input = x

    def find_axis(self, ch: str, view: str | None = None) -> int:
        """Return the position of an axis, counted from 0, in `view` or else in the base.

        Raises
        ------
        ValueError
            If there is no such axis.

        Examples
        --------
        >>> DataView().find_axis("b", "chwb")
        3
        """
        view = self._view if view is None else view
        if ch not in view or len(ch) != 1:
            raise ValueError(f"view {view!r} has no axis {ch!r}")
        return view.index(ch)

    def n_sample(self) -> int:
        return self._input.shape[self.find_axis("b")] if self._view else 0

    def sample_size(self) -> int:
        self._base()
        assert self._layout is not None
        return self._layout.total

    # -- life -----------------------------------------------------------------------------------

    def to(self: Self, dtype: Any) -> Self:
        """Convert the base to another element type or device, forget converted copies, return self.

        `dtype` is anything that `forward_get` accepts.  Recorded gradients stay.

        Examples
        --------
        >>> import numpy as np
        >>> DataView("bf", np.zeros((2, 3))).to("float").input.dtype
        dtype('float32')
        """
        base, kind = self._base()
        kind = requested_kind(dtype, kind)
        self._input, self._kind = convert(base, kind), kind
        self.flush()
        return self

    def clone(self: Self) -> Self:
        """Return a view of the same class with a copy of the base, without gradients."""
        result = self._like()
        if self._view:
            result.forward_put(self._view, rows.copy(self._input))
        return result

    def __repr__(self) -> str:
        if self._kind is None:
            return f"{type(self).__name__}()"
        kind = f"{self._kind.dtype}@{self._kind.device}" if self._kind.device else self._kind.dtype
        return f"{type(self).__name__}({self._view!r}, {tuple(self._input.shape)}, {kind})"
