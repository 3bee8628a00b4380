"""`DataBatch` and `DataDesc`: a batch of a provider, and the description of it beforehand.

These are plain containers with the field names of MXNet.  They hold arrays and never convert them.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from .dtypes import numpy_dtype


def axes_of(layout: str | None, ndim: int) -> str:
    """Return the letters that layouts and views have for the axes of a described array.

    The batch comes first if the layout is None, has another number of axes (MXNet says "NCHW"
    whatever the array is) or repeats a letter.
    """
    if layout is None or len(layout) != ndim or len(set(layout)) != ndim:
        return "b" + {1: "", 2: "f", 3: "wc", 4: "chw"}.get(ndim, "xyzuvqrs"[: ndim - 1])
    return layout.upper().replace("N", "B").lower()


class DataDesc(tuple[Any, ...]):
    """Name and shape of one array of a batch, with its dtype and layout.

    A 2-tuple ``(name, shape)`` with two more attributes, so that it compares equal to the plain
    tuple (rule of MXNet's ``DataDesc``).

    Parameters
    ----------
    name : str
    shape : tuple of int
        Shape of a whole batch.
    dtype : dtype_like
    layout : str
        One letter for every axis, ``N`` being the batch.

    Examples
    --------
    >>> desc = DataDesc("data", (4, 3, 28, 28))
    >>> desc == ("data", (4, 3, 28, 28)), desc.dtype, desc.layout
    (True, dtype('float32'), 'NCHW')
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: str | None

    def __new__(
        cls, name: str, shape: Any, dtype: Any = np.float32, layout: str | None = "NCHW"
    ) -> Self:
        """Make the pair and give it its attributes."""
        self = super().__new__(cls, (name, tuple(shape)))
        self.name = name
        self.shape = tuple(shape)
        self.dtype = numpy_dtype(dtype)
        self.layout = layout
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, self.shape, self.dtype, self.layout

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return the position of the batch axis in a layout: 0 for None, -1 if there is none.

        Examples
        --------
        >>> DataDesc.get_batch_axis("TNC")
        1
        """
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Any, types: Any = None) -> list[DataDesc]:
        """Return descriptions of arrays from their names, shapes and, if given, element types.

        Parameters
        ----------
        shapes : sequence of (str, tuple of int)
        types : sequence of (str, dtype_like), optional
            Element type of every array, in any order; by default all are float32.

        Raises
        ------
        ValueError
            If `types` lacks an array.

        Examples
        --------
        >>> DataDesc.get_list([("data", (4, 2))], [("data", "uint8")])
        [DataDesc[data,(4, 2),uint8,NCHW]]
        """
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        dtypes = dict(types)
        for name, _ in shapes:
            if name not in dtypes:
                raise ValueError(f"there is no type for {name!r}, only for {', '.join(dtypes)}")
        return [DataDesc(name, shape, dtypes[name]) for name, shape in shapes]


class AbstractDataBatch:
    """Base class of the batches of a provider."""


class DataBatch(AbstractDataBatch):
    """One batch.

    Parameters
    ----------
    data : list of array
        NumPy arrays or torch tensors; padding fills the batch axis.
    label : list of array, optional
        As `data`; empty when the provider gives no labels.
    pad : int
        Number of samples at the end of the batch that are padding.
    index : numpy.ndarray of uint64, optional
        Ids of the samples: header ids of image records, row numbers elsewhere.
    bucket_key : object, optional
        Key of the shape of a batch, (height, width) where images have several; the shapes of a
        batch with a key are not compared with those that its provider announces.
    provide_data, provide_label : list of DataDesc, optional
        Descriptions of `data` and `label`, used to find an array by name.

    Attributes
    ----------
    source : numpy.ndarray of int64, (slots,), or None
        In batches of record images: the number of the pack that each sample came from, -1 for a
        slot that holds none.
    fields : dict of str to list
        Fields that are not arrays, such as captions: a value for every slot.  ``batch[name]`` finds
        them as well.
    kinds : mapping of str to field
        The kinds of the fields among the arrays and lists, from `iterators.fields`, by name, where
        the provider has them; `show` draws fields by their kinds.

    Examples
    --------
    >>> batch = DataBatch([np.zeros((4, 2))], [np.ones(4)], pad=1,
    ...                   provide_data=[DataDesc("data", (4, 2))],
    ...                   provide_label=[DataDesc("softmax_label", (4,))])
    >>> batch.count_samples(), batch["softmax_label"].shape
    (3, (4,))
    >>> batch
    DataBatch(data=(4, 2) float64, softmax_label=(4,) float64, pad=1)
    >>> print(batch)  # MXNet's text
    DataBatch: data shapes: [(4, 2)] label shapes: [(4,)]
    """

    #: Its images as HTML, "" if it holds none; the floor that knows pictures sets it.
    pictures: ClassVar[Callable[[Any], str]] = staticmethod(lambda batch: "")

    def __init__(
        self,
        data: Sequence[Any],
        label: Sequence[Any] | None = None,
        pad: int | None = 0,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Sequence[Any] | None = None,
        provide_label: Sequence[Any] | None = None,
    ) -> None:
        for name, arrays in (("data", data), ("label", label)):
            if arrays is not None and not isinstance(arrays, (list, tuple)):
                raise TypeError(f"{name} must be a list or tuple of arrays, not {type(arrays)}")
        self.data: list[Any] = list(data)
        self.label: list[Any] = [] if label is None else list(label)
        self.pad: Any = pad
        self.index: Any = index
        self.bucket_key: Any = bucket_key
        self.provide_data: Any = provide_data
        self.provide_label: Any = provide_label
        self.source: Any = None
        self.fields: dict[str, list[Any]] = {}
        self.kinds: Mapping[str, Any] = {}

    @property
    def count(self) -> int:
        """Number of samples that are not padding."""
        return self._size() - (self.pad or 0)

    def count_samples(self) -> int:
        """Return the number of samples that are not padding (MXNet.jl's name for `count`)."""
        return self.count

    def _size(self) -> int:
        parts = (self.data, self.provide_data), (self.label, self.provide_label)
        for arrays, described in parts:  # an array may be shorter than it was described
            shape = getattr(arrays[0], "shape", None) if arrays else None
            if shape:
                layout = getattr(described[0], "layout", None) if described else None
                return shape[DataDesc.get_batch_axis(layout)]
        descriptions = self.provide_data or self.provide_label
        if descriptions:
            desc = descriptions[0]
            return desc[1][DataDesc.get_batch_axis(getattr(desc, "layout", None))]
        return len((self.data or self.label)[0])

    def get(self, name: str) -> Any:
        """Return the array or list called `name`: data first, then labels, then other fields.

        Raises
        ------
        KeyError
            If no array has that name.
        """
        names = []
        for descriptions, arrays in (
            (self.provide_data, self.data),
            (self.provide_label, self.label),
        ):
            for desc, array in zip(descriptions or (), arrays, strict=False):
                if desc[0] == name:
                    return array
                names.append(desc[0])
        if name in self.fields:
            return self.fields[name]
        names += self.fields
        raise KeyError(f"no array named {name!r}; this batch has {', '.join(names) or 'no names'}")

    __getitem__ = get

    def __iter__(self) -> Iterator[Any]:
        """Refused: a batch is no pair."""
        raise TypeError(
            "a batch cannot be unpacked: use batch.data[0] and batch.label[0], of which the last "
            "batch.pad samples are padding; data_specs=(spaces, sources) gives batches that are "
            "tuples"
        )

    def _arrays(self) -> Iterator[tuple[str, Any]]:
        """Return names and arrays; without descriptions the names are empty."""
        descriptions = [*(self.provide_data or ()), *(self.provide_label or ())]
        arrays = [*self.data, *self.label]
        names = [desc[0] for desc in descriptions] or [""] * len(arrays)
        return zip(names, arrays, strict=False)

    def __repr__(self) -> str:
        texts = [shape_text(name, a.shape, getattr(a, "dtype", None)) for name, a in self._arrays()]
        return f"{type(self).__name__}({', '.join([*texts, f'pad={self.pad}'])})"

    def __str__(self) -> str:
        data = [tuple(array.shape) for array in self.data]
        label = [tuple(array.shape) for array in self.label] or None
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label}"

    def _repr_html_(self) -> str:
        """Show the arrays in a table, and images as pictures, for notebooks."""
        rows = [
            (name, shape_text("", array.shape, getattr(array, "dtype", None)))
            for name, array in self._arrays()
        ]
        rows.append(("samples", f"{self.count}, pad {self.pad}"))
        cells = [
            f"<tr><th>{html.escape(str(a))}</th><td>{html.escape(b)}</td></tr>" for a, b in rows
        ]
        return f"<table>{''.join(cells)}</table>{type(self).pictures(self)}"


def shape_text(name: str, shape: Sequence[int], dtype: Any = None) -> str:
    """Describe an array in a line of text, such as ``data=(4, 3) float32``."""
    kind = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype or ""
    return f"{name}{'=' * bool(name)}{tuple(shape)} {kind}".rstrip()
