"""Batches of a provider in the form that ``data_specs=`` asks for.

It tells the image stage which axes and element type to write, so that images are in their final
form when they leave it, and turns labels into what the request says.  It decodes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.batch import DataBatch, DataDesc
from ..core.layout import plan
from ..core.spec import SpecError
from ..spaces import Conv2DSpace, DataSpecsMapping, IndexSpace, Space, VectorSpace

__all__ = ["BatchForm", "SpecBatch"]

#: Element types that the image stage writes.
STAGE_DTYPES = ("float32", "float16", "uint8", "int8")


class SpecBatch(DataBatch, tuple):  # type: ignore[misc]
    """A batch in the form of data_specs: a tuple of its parts, and a `DataBatch`.

    ``images, targets = batch`` is what was asked for; ``batch.data``, ``batch.label``,
    ``batch.pad``, ``batch.index`` and ``batch["targets"]`` are as in every batch.

    Examples
    --------
    >>> batch = SpecBatch((np.zeros((4, 2)), np.ones(4)), data=[np.zeros((4, 2))])
    >>> images, targets = batch
    >>> batch.data[0].shape, batch.pad
    ((4, 2), 0)
    """

    def __new__(cls, parts: tuple[Any, ...], **fields: Any) -> SpecBatch:
        """Make the tuple; the rest is what `DataBatch` takes."""
        return tuple.__new__(cls, parts)

    def __init__(self, parts: tuple[Any, ...], **fields: Any) -> None:
        DataBatch.__init__(self, **fields)

    def __getitem__(self, key: Any) -> Any:
        return self.get(key) if isinstance(key, str) else tuple.__getitem__(self, key)


class BatchForm:
    """What a request means for image records.

    Parameters
    ----------
    data_specs : (Space, source)
        The sources are ``"features"`` (or `data_name`) and ``"targets"`` (or `label_name`).
    data_shape : tuple of int
        Channels, rows, columns.
    batch_size : int
    data_name : str
    label_name : str or None

    Attributes
    ----------
    layout : str
        Axes that the stage has to write, as in "CHWN".
    dtype : str
        Element type that it has to write.

    Raises
    ------
    SpecError
        For sources that there are not, and spaces that images or labels do not fit into.

    Examples
    --------
    >>> space = Conv2DSpace((8, 9), num_channels=3, axes=("c", 0, 1, "b"), dtype="uint8")
    >>> form = BatchForm((space, "features"), (3, 8, 9), 4, "data", None)
    >>> form.layout, form.dtype
    ('CHWN', 'uint8')
    >>> form.describe("uint8", 1)
    ([DataDesc[features,(3, 8, 9, 4),uint8,CHWN]], [])
    """

    def __init__(
        self,
        data_specs: Any,
        data_shape: Sequence[int],
        batch_size: int,
        data_name: str,
        label_name: str | None,
    ) -> None:
        self._mapping = DataSpecsMapping(data_specs)
        self._shape = tuple(data_shape)
        self._batch_size = batch_size
        self._label_width = 0
        names = {"features": True, data_name: True}
        if label_name is not None:
            names.update({"targets": False, label_name: False})
        self._entries: list[tuple[Any, str, bool]] = []
        for space, source in self._mapping.specs_to_index:
            if source not in names:
                raise SpecError(
                    f"there is no source {source!r}; this provider has "
                    f"{', '.join(map(repr, names))}"
                )
            is_image = names[source]
            if is_image:
                self._check_image(space)
            self._entries.append((space, source, is_image))
        images = [space for space, _, is_image in self._entries if is_image]
        if not images:
            raise SpecError("data_specs must ask for the images: the source 'features'")
        # What the first of several forms needs is written by the stage; the rest are conversions.
        first = next((space for space in images if isinstance(space, Conv2DSpace)), None)
        self._written = first or Conv2DSpace(self._shape[1:], channels=self._shape[0])
        self.layout = _capitals(self._written)
        self.dtype = _stage_dtype([space.dtype for space in images])

    def describe(self, dtype: Any, label_width: int) -> tuple[list[DataDesc], list[DataDesc]]:
        """The arrays of a batch, when it is known what the stage writes.

        Parameters
        ----------
        dtype : dtype_like
            Element type of the images before the last conversion.
        label_width : int
            Labels of a record.

        Raises
        ------
        SpecError
            If so many labels do not fit into their space.
        """
        self._label_width = label_width
        self._descriptions: tuple[list[DataDesc], list[DataDesc]] = ([], [])
        for space, source, is_image in self._entries:
            stored = dtype if is_image else self._labels_of(space).dtype
            desc = _describe(source, space, self._batch_size, stored)
            self._descriptions[0 if is_image else 1].append(desc)
        return self._descriptions

    def _check_image(self, space: Space) -> None:
        channels, rows, columns = self._shape
        if isinstance(space, Conv2DSpace):
            fits = space.shape == (rows, columns) and space.num_channels == channels
        else:
            fits = isinstance(space, VectorSpace) and space.dim == channels * rows * columns
        if not fits:
            raise SpecError(
                f"images of data_shape={self._shape} do not fit into {space}: expected a "
                f"Conv2DSpace(shape={(rows, columns)}, num_channels={channels}) or a "
                f"VectorSpace(dim={channels * rows * columns})"
            )

    def _labels_of(self, space: Space) -> Space:
        """The space of the labels of the records, as far as the request tells."""
        width = self._label_width
        if isinstance(space, IndexSpace) and space.dim == width:
            return IndexSpace(space.max_labels, width)
        if isinstance(space, VectorSpace) and space.dim == width:
            return VectorSpace(width, dtype="float32")
        if isinstance(space, VectorSpace) and width == 1:
            return IndexSpace(space.dim, 1)
        raise SpecError(
            f"label_width={width} does not fit into {space}: expected VectorSpace(dim={width}) for "
            f"the labels as they are, IndexSpace(dim={width}), or with one label a VectorSpace of "
            "as many elements as there are classes"
        )

    def batch(
        self,
        data: Any,
        label: np.ndarray,
        place: Callable[[Sequence[Any]], list[Any]],
        normalise: Callable[[Any], Any] | None,
        **fields: Any,
    ) -> SpecBatch:
        """A batch from what the stage wrote.

        Parameters
        ----------
        data : numpy.ndarray
            Images in `layout`.
        label : numpy.ndarray of float32, (batch, label_width)
        place : callable
            Moves arrays to where they are wanted.
        normalise : callable or None
            What is left to do with the images there.
        **fields
            For `DataBatch`.
        """
        if label.ndim == 1:
            label = plan("b", "bf")(label)
        targets = [self._targets(label, space) for space, _, image in self._entries if not image]
        images, *placed = place([data, *targets])
        if normalise is not None:
            images = normalise(images)
        numeric = isinstance(images, np.ndarray)
        parts, remaining = [], iter(placed)
        for space, _, is_image in self._entries:
            if is_image:
                written = self._as_written(images)
                convert = written.np_format_as if numeric else written.format_as
                parts.append(convert(images, space))
            else:
                parts.append(next(remaining))
        nested = self._mapping.nest(tuple(parts))
        kinds = [is_image for _, _, is_image in self._entries]
        return SpecBatch(
            nested if isinstance(nested, tuple) else (nested,),
            data=[part for part, is_image in zip(parts, kinds, strict=True) if is_image],
            label=[part for part, is_image in zip(parts, kinds, strict=True) if not is_image],
            provide_data=self._descriptions[0],
            provide_label=self._descriptions[1],
            **fields,
        )

    def _as_written(self, images: Any) -> Conv2DSpace:
        space = self._written
        return Conv2DSpace(
            space.shape, num_channels=space.num_channels, axes=space.axes, dtype=images.dtype
        )

    def _targets(self, label: np.ndarray, space: Space) -> Any:
        stored = self._labels_of(space)
        if isinstance(stored, VectorSpace):
            return stored.np_format_as(label, space)
        whole = label.astype(np.int64)
        if not np.array_equal(whole, label):
            wrong = label[whole != label][0]
            raise SpecError(f"the label {wrong} is not an integer, which {space} needs")
        if whole.size and not 0 <= whole.min() <= whole.max() < stored.max_labels:  # type: ignore[attr-defined]
            raise SpecError(
                f"labels from {whole.min()} to {whole.max()} do not fit into {space}: expected "
                f"labels from 0 to {stored.max_labels - 1}"  # type: ignore[attr-defined]
            )
        return stored.np_format_as(whole, space)


def _capitals(space: Conv2DSpace) -> str:
    return space.layout.axes.upper().replace("B", "N")


def _stage_dtype(names: Sequence[str | None]) -> str:
    """The type in which the stage loses nothing that was asked for."""
    wanted = set(names)
    if len(wanted) == 1:
        (name,) = wanted
        if name in STAGE_DTYPES:
            return name
        if name is not None and "int" in name:
            return "uint8"
    return "float32"


def _describe(source: str, space: Any, batch_size: int, stored: Any) -> DataDesc:
    if isinstance(space, VectorSpace) and space.sparse:
        raise SpecError(f"{space} is sparse: images and labels are dense here")
    shape = space.layout.shape(batch_size)
    layout = _capitals(space) if isinstance(space, Conv2DSpace) else "NC"
    return DataDesc(source, shape, space.dtype or stored, layout)
