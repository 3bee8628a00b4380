"""`Space`: the protocol of all spaces, and the base of the elementary ones.

A space describes batches and holds none.  It checks batches, and asks the layout engine for
conversions; it never permutes or reshapes anything itself.  The names and rules are Pylearn2's.
"""

from __future__ import annotations

import abc
import functools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from recordio.extras import need

from ..core.backend import backend_of, is_sparse, is_stored_sparse, is_tensor
from ..core.dtypes import dtype_name, torch_dtype
from ..core.layout import Layout, plan
from .spec import FieldSpec, Form, SpecError


def _families(batch: Any) -> set[str]:
    if isinstance(batch, list):
        raise TypeError("a composite batch is a tuple, not a list")
    if batch is None:
        return set()
    if isinstance(batch, tuple):
        families: set[str] = set().union(*map(_families, batch))
        if families >= {"numeric", "symbolic"}:
            raise SpecError("a batch is either of arrays or of tensors, not of both")
        return families
    if isinstance(batch, np.ndarray) or is_sparse(batch):
        return {"numeric"}
    return {"symbolic"} if is_tensor(batch) else {"other"}


def is_numeric_batch(batch: Any) -> bool:
    """Return whether a batch consists of NumPy arrays and scipy sparse matrices, or of no data.

    Raises
    ------
    TypeError
        For a list.
    AssertionError
        For a tuple of both families.

    Examples
    --------
    >>> is_numeric_batch((np.zeros(3), None)), is_numeric_batch(5)
    (True, False)
    """
    return _families(batch) <= {"numeric"}


def is_symbolic_batch(batch: Any) -> bool:
    """Return whether a batch consists of torch tensors, or of no data.

    Examples
    --------
    >>> is_symbolic_batch(np.zeros(3)), is_symbolic_batch(())
    (False, True)
    """
    return _families(batch) <= {"symbolic"}


def is_dataless_batch(batch: Any) -> bool:
    """Return whether a batch has no data at all: None, or a tuple of nothing else.

    Examples
    --------
    >>> is_dataless_batch((None, ()))
    True
    """
    return not _families(batch)


#: Axes of rows, through which spaces of other axes meet.
ROWS = "bf"

Callback = Callable[[Any], Any]
#: From valid batches of one form to those of another.
Conversion = Callable[[Any], Any]


class Space(Form):
    """Format of a batch.

    Every method with ``np_`` in its name works on NumPy arrays and scipy sparse matrices; the one
    without it works on torch tensors in the same way, and gradients flow through conversions.
    """

    #: True if batches are scipy sparse matrices or sparse tensors.
    sparse = False

    _kinds: ClassVar[list[type[Space]]] = []

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        Space._kinds.append(cls)

    @classmethod
    def describing(cls, spec: FieldSpec | tuple[FieldSpec, ...]) -> Space | None:
        """Return the space of this class in which such data is stored, if there is one."""
        return None

    # -- what other modules ask before they convert anything ------------------------------------

    @property
    def flat_layout(self) -> Layout | None:
        """The axes of the same samples as rows of numbers; None if there is no such form."""
        return None

    def classes_of(self, width: int, is_target: bool) -> int | None:
        """Return the number of classes that stored numbers, `width` a sample, have here."""
        return None

    # -- what subclasses provide ----------------------------------------------------------------

    @property
    @abc.abstractmethod
    def dtype(self) -> Any:
        """Name of the element type, None for any; a nested tuple for a composite space."""

    @abc.abstractmethod
    def _validate(self, batch: Any, numeric: bool) -> None:
        """Check a batch of the right family."""

    def _check_sizes(self, space: Space) -> None:
        """Refuse a target that cannot hold as much."""
        if space.is_null:
            raise self._no_conversion(space)
        here, there = self.get_total_dimension(), space.get_total_dimension()
        if here != there:
            raise ValueError(f"{self} has {here} elements and {space} has {there}")

    @abc.abstractmethod
    def _conversion(self, space: Space) -> Conversion:
        """Return the conversion of validated batches to a space that `_check_sizes` lets pass."""

    @abc.abstractmethod
    def _size(self, batch: Any) -> int | None:
        """Return the number of samples; None when there is no data."""

    def get_origin(self) -> Any:
        """Return zeros: one sample without its batch axis."""
        raise NotImplementedError(f"{self} has no origin")

    def get_origin_batch(self, batch_size: int, dtype: Any = None) -> Any:
        """Return zeros: a batch of `batch_size` samples."""
        raise NotImplementedError(f"{self} has no origin")

    @abc.abstractmethod
    def get_total_dimension(self) -> int:
        """Return the number of elements of a sample."""

    @abc.abstractmethod
    def make_torch_batch(
        self,
        name: Any = None,
        dtype: Any = None,
        batch_size: int = 1,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """Return torch tensors of zeros in this form.

        Parameters
        ----------
        name : str or tuple, optional
            Kept as the attribute ``batch_name`` of the tensor; the parts of a composite space get
            ``name[0]``, ``name[1]``, ... unless a tuple names each.
        dtype : dtype_like or tuple, optional
            Element type, by default that of the space.
        batch_size : int
            Number of samples; 1 for sequence spaces.
        device : str or torch.device, optional
            ``"meta"`` gives a placeholder without data.
        requires_grad : bool
            Whether gradients are to reach the tensors of a float type.
        """

    # -- batches --------------------------------------------------------------------------------

    def make_batch(self, *arguments: Any, **keywords: Any) -> Any:
        """Make a batch as `make_torch_batch` does."""
        return self.make_torch_batch(*arguments, **keywords)

    #: Names of Pylearn2.
    make_theano_batch = make_batch
    make_batch_theano = make_batch
    get_theano_batch = make_batch
    make_theano_variables = make_batch

    def make_shared_batch(self, batch_size: int, name: Any = None, dtype: Any = None) -> Any:
        """Return writable torch tensors of zeros (Pylearn2's shared variable)."""
        return self.make_torch_batch(name, dtype, batch_size)

    def get_batch_axis(self) -> int:
        """Return the position of the batch axis."""
        return 0

    def np_validate(self, batch: Any) -> None:
        """Check that arrays have the form of this space.

        Raises
        ------
        TypeError
            For the wrong kind of object, or an element type that would lose information.
        ValueError
            For a wrong number of axes, or an axis of the wrong size.
        """
        self._check_family(batch, True, "validate")
        self._validate(batch, numeric=True)

    def validate(self, batch: Any) -> None:
        """Check that torch tensors have the form of this space; raises as `np_validate`."""
        self._check_family(batch, False, "validate")
        self._validate(batch, numeric=False)

    def np_batch_size(self, batch: Any) -> int:
        """Return the number of samples; 0 when there is no data."""
        self._check_family(batch, True, "batch_size")
        self.np_validate(batch)
        return self._size(batch) or 0

    def batch_size(self, batch: Any) -> int:
        """Return the number of samples in tensors; 0 when there is no data."""
        self._check_family(batch, False, "batch_size")
        self.validate(batch)
        return self._size(batch) or 0

    # -- conversion -----------------------------------------------------------------------------

    def np_format_as(self, batch: Any, space: Space) -> Any:
        """Convert arrays from this form to that of another space.

        Parameters
        ----------
        batch : array or tuple
            In the form of this space; it is validated.
        space : Space
            The space of the result.  A ``dtype`` of None keeps the element type.

        Returns
        -------
        array or tuple
            `batch` itself or a view of it if nothing has to move; else a copy.

        Raises
        ------
        TypeError, ValueError
            If the batch is not in this form, or the sizes of the spaces differ.
        NotImplementedError
            If the two kinds of spaces have nothing in common.
        """
        self._check_family(batch, True, "format_as")
        return self._convert(batch, space, numeric=True)

    def format_as(self, batch: Any, space: Space) -> Any:
        """Convert tensors as `np_format_as` does; the result is differentiable."""
        self._check_family(batch, False, "format_as")
        return self._convert(batch, space, numeric=False)

    def undo_np_format_as(self, batch: Any, space: Space) -> Any:
        """Convert arrays from the form of `space` back to this one."""
        return space.np_format_as(batch, self)

    def undo_format_as(self, batch: Any, space: Space) -> Any:
        """Convert tensors from the form of `space` back to this one."""
        return space.format_as(batch, self)

    def bind(self, spec: FieldSpec) -> Conversion:
        """Return the conversion of stored batches to this form, by way of their own space."""
        stored = space_of(spec)
        stored._check_sizes(self)
        return stored._conversion(self)

    def _convert(self, batch: Any, space: Space, numeric: bool) -> Any:
        if not isinstance(space, Space):
            raise TypeError(f"expected a space, not {space!r}")
        self._validate(batch, numeric)
        self._check_sizes(space)
        return self._conversion(space)(batch)

    @staticmethod
    def _check_family(batch: Any, numeric: bool, method: str) -> None:
        """Refuse what a method is not for, and name its twin that is: ``np_`` takes arrays."""
        here, there = is_numeric_batch, is_symbolic_batch
        family, twin = "numpy arrays or scipy sparse matrices", method
        if not numeric:
            here, there, family, twin = there, here, "torch tensors", f"np_{method}"
        if not here(batch):
            advice = f": use {twin}" if there(batch) else ""
            raise TypeError(f"expected {family}, not {type(batch).__name__}{advice}")

    def _no_conversion(self, space: Space) -> NotImplementedError:
        return NotImplementedError(f"there is no conversion from {self} to {space}")


@functools.cache
def _load_kinds() -> None:
    """Load the files of this package, once: a kind is known when its file is loaded."""
    package = sys.modules[__package__]
    for name in package.__all__:
        getattr(package, name)


def space_of(spec: FieldSpec | tuple[FieldSpec, ...]) -> Space:
    """Return the space in which data is stored; a composite one for a tuple."""
    _load_kinds()
    for kind in Space._kinds:
        space = kind.describing(spec)
        if space is not None:
            return space
    raise SpecError(f"no space describes {spec}")


class SimpleSpace(Space):
    """A space whose batches are single arrays.

    Parameters
    ----------
    dtype : None, str, numpy.dtype, type or torch.dtype
        Element type; ``"floatX"`` is replaced at once by the configured float type.
    validate_callbacks, np_validate_callbacks : sequence of callable
        Called with a batch before it is checked.
    """

    def __init__(
        self,
        dtype: Any,
        validate_callbacks: Sequence[Callback] = (),
        np_validate_callbacks: Sequence[Callback] = (),
    ) -> None:
        self.dtype = dtype
        self.validate_callbacks: list[Callback] = list(validate_callbacks)
        self.np_validate_callbacks: list[Callback] = list(np_validate_callbacks)

    @property
    @abc.abstractmethod
    def layout(self) -> Layout:
        """The axes of a batch."""

    @abc.abstractmethod
    def _description(self) -> tuple[Any, ...]:
        """Return the values that make two spaces of this class equal, except for the dtype."""

    @property
    def dtype(self) -> str | None:
        """Name of the element type; None for any."""
        return self._dtype

    @dtype.setter
    def dtype(self, value: Any) -> None:
        self._dtype = None if value is None else dtype_name(value)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and isinstance(other, SimpleSpace)
            and self._description() == other._description()
            and self.dtype == other.dtype
        )

    def __hash__(self) -> int:
        return hash((type(self), self._description(), self.dtype))

    # -- checks ---------------------------------------------------------------------------------

    def _validate(self, batch: Any, numeric: bool) -> None:
        for callback in self.np_validate_callbacks if numeric else self.validate_callbacks:
            callback(batch)
        if batch is None or isinstance(batch, tuple):
            raise TypeError(f"a batch of {self} is one array, not {batch!r}")
        self._check_dtype(backend_of(batch).dtype(batch))
        self._check_container(batch)
        layout = self.layout
        if batch.ndim != layout.ndim:
            raise ValueError(
                f"a batch of {self} has {layout.ndim} axes, not the {batch.ndim} of shape "
                f"{tuple(batch.shape)}"
            )
        for axis in sorted(layout.axes):  # the channels first
            size = batch.shape[layout.axis(axis)]
            expected_size = layout.sizes.get(axis, size)
            if size != expected_size:
                raise ValueError(
                    f"axis {layout.axis(axis)} of a batch of {self} has size {expected_size}, not "
                    f"{size} as in shape {tuple(batch.shape)}"
                )

    def _check_dtype(self, name: str) -> None:
        if self.dtype is None:
            return
        if name.startswith("complex") and not self.dtype.startswith("complex"):
            raise TypeError(f"complex numbers do not fit into {self}")
        if "int" in self.dtype and "int" not in name:
            raise TypeError(f"{name} does not fit into the integers of {self}")

    def _check_container(self, batch: Any) -> None:
        if is_stored_sparse(batch):
            raise TypeError(f"a batch of {self} is dense, not a sparse {type(batch).__name__}")

    def _conversion(self, space: Any) -> Conversion:
        """Convert to other orders of the axes, or to and from rows."""
        rows, target_rows = self.flat_layout, space.flat_layout
        if rows is None or target_rows is None:
            raise self._no_conversion(space)
        here, there = self.layout, space.layout
        if there.axes == ROWS:
            convert = plan(here, rows)
        elif here.axes == ROWS:
            convert = plan(target_rows, there)
        elif set(here.axes) == set(there.axes):
            convert = plan(here, there)
        else:
            raise self._no_conversion(space)
        if not space.sparse:
            return functools.partial(convert, dtype=space.dtype)
        return lambda batch: in_storage(convert(batch, space.dtype), space)

    def _size(self, batch: Any) -> int | None:
        return int(batch.shape[self.get_batch_axis()])

    # -- batches --------------------------------------------------------------------------------

    def _shape(self, batch_size: int) -> tuple[int, ...]:
        return self.layout.shape(operator.index(batch_size))

    def _batch_dtype(self, dtype: Any) -> str:
        if dtype is None:
            dtype = self.dtype
        if dtype is None:
            raise TypeError(f"{self} has no dtype: say which one the batch should have")
        return dtype_name(dtype)

    def get_origin_batch(self, batch_size: int, dtype: Any = None) -> Any:
        """Return zeros for `batch_size` samples.

        Raises
        ------
        TypeError
            If neither `dtype` nor the space says which type.
        """
        return np.zeros(self._shape(batch_size), self._batch_dtype(dtype))

    def make_torch_batch(
        self,
        name: Any = None,
        dtype: Any = None,
        batch_size: int = 1,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """Return a torch tensor of zeros; see `Space.make_torch_batch`."""
        torch = need("torch", "make_torch_batch")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name={name!r}: expected a string")
        target = torch_dtype(self._batch_dtype(dtype))
        batch = torch.zeros(self._shape(batch_size), dtype=target, device=device)
        batch = self._finish(batch)
        if requires_grad and (target.is_floating_point or target.is_complex):
            batch.requires_grad_()
        batch.batch_name = name
        return batch

    def _finish(self, tensor: Any) -> Any:
        """Return a dense tensor of zeros in the storage format of this space."""
        return tensor


def in_storage(batch: Any, space: Space) -> Any:
    """Return rows in the element type of a space, and sparse or dense as the space is."""
    ops = backend_of(batch)
    if space.sparse == is_stored_sparse(batch):
        return ops.cast(batch, space.dtype)
    stored = ops.sparse(batch) if space.sparse else ops.dense(batch)
    return backend_of(stored).cast(stored, space.dtype)


def positive(name: str, value: Any) -> int:
    """Return a positive integer; other values are a SpecError."""
    try:
        number = operator.index(value)
    except TypeError:
        raise SpecError(f"{name}={value!r}: expected an integer above 0") from None
    if isinstance(value, (bool, np.bool_)) or number <= 0:
        raise SpecError(f"{name}={value!r}: expected an integer above 0")
    return number
