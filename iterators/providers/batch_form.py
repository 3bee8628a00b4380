"""Batches of a provider in the form that ``data_specs=`` requests.

`BatchForm` knows which arrays of a batch a request means and how each is converted; it tells the
image stage which axes and element type to write, so that images are in their final form when they
leave it.  It reads no files, and every conversion is that of a space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.backend import backend_of, is_stored_sparse
from ..core.batch import DataDesc, axes_of
from ..core.dtypes import BATCH_TYPES
from ..core.layout import Layout, plan
from ..spaces import DataSpecsMapping
from ..spaces.spec import FieldSpec, SpecError
from .form_batches import FormBatch, form_type, in_form

#: Axes that the image stage writes, in any order.
IMAGES = "bhwc"

#: Single labels as rows of one label.
ONE_SLOT = plan("b", "bf")

Transfer = Callable[[Sequence[Any]], list[Any]]


@dataclass
class _Part:
    """One distinct entry of a request."""

    space: Any
    source: str
    is_label: bool
    #: Which of the data or label arrays.
    number: int
    #: How the array is stored.
    layout: Layout = field(init=False)
    #: How its numbers are understood if they have to be labels.
    labels: Layout | None = field(init=False)
    #: The kind of array that came last, and what turns it into the space.
    bound: tuple[Any, Callable[[Any], Any]] = field(init=False)

    def bind(self, desc: Any) -> DataDesc:
        """Learn how the array is stored, and describe the result.

        The description comes from converting a batch of no samples, which checks everything but
        values.
        """
        shape, dtype = desc[1], getattr(desc, "dtype", np.dtype(np.float32))
        if "b" not in self.space.layout.axes:
            raise SpecError(f"{self.space} is one sequence, and a batch has several samples")
        stored = _axes(getattr(desc, "layout", None), len(shape))
        sizes = {axis: n for axis, n in zip(stored, shape, strict=True) if axis != "b"}
        self.layout = Layout(stored, **sizes)
        width = self.layout.total
        classes = self.space.classes_of(width, self.is_label) if len(shape) <= 2 else None
        self.labels = None
        if classes is not None:
            self.labels = Layout("bt", t=width, index_of="k", k=classes)
        self.bound = (None, list)
        try:
            empty = self.convert(np.zeros(self.layout.shape(0), dtype), 0)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise SpecError(
                f"{self.source!r}, stored as {dtype} of shape {tuple(shape)} with the axes "
                f"{stored!r}, does not fit into {self.space}: {error}"
            ) from error
        size = shape[self.layout.axis("b")]
        layout = self.space.layout
        features = "C" if self.labels is None else "K"
        letters = layout.axes.upper().replace("B", "N").replace("F", features)
        dtype = backend_of(empty).dtype(empty)
        return DataDesc(self.source, layout.shape(size), dtype, letters)

    @property
    def on_host(self) -> bool:
        """True if it is converted before the batch is moved: checked value by value, or tiny."""
        return self.is_label or self.labels is not None

    def convert(self, x: Any, count: int) -> Any:
        """An array as it is stored, of which `count` samples are not padding, in the space."""
        kind = type(x), x.dtype, x.shape, getattr(x, "layout", None)
        bound, conversion = self.bound
        if bound != kind:
            conversion = self._conversion(x)
            self.bound = kind, conversion
        return conversion(x) if self.labels is None else self._whole(x, count, conversion)

    def _conversion(self, x: Any) -> Callable[[Any], Any]:
        """Return what turns arrays like this one, or the labels in them, into the space."""
        plan(self.layout, self.layout)(x)  # refuses what is not as it was described
        sparse = is_stored_sparse(x)
        if self.labels is None:
            return self.space.bind(FieldSpec(self.layout, backend_of(x).dtype(x), sparse))
        if sparse:
            raise SpecError(f"{self.source!r} is sparse, and its zeros are not labels")
        return self.space.bind(FieldSpec(self.labels, "int64"))

    def _whole(self, x: Any, count: int, conversion: Callable[[Any], Any]) -> Any:
        """Whole numbers in the range of the labels; padding may be anything."""
        assert self.labels is not None
        if x.ndim == 1:
            x = ONE_SLOT(x)
        classes = self.labels.sizes["k"]
        ops = backend_of(x)
        with np.errstate(invalid="ignore"):
            whole = ops.cast(x, "int64")
        wrong = (whole != x) | (whole < 0) | (whole >= classes)
        if wrong[:count].any():
            bad = x[:count][wrong[:count]][0]
            raise SpecError(
                f"{self.source!r} holds {bad:g}, which does not fit into {self.space}: expected "
                f"labels from 0 to {classes - 1}"
            )
        if self.space.layout.index_of or not wrong.any():
            return conversion(whole)
        # Padding that is no label belongs to no class.
        good = conversion(whole[:count])
        ops = backend_of(good)
        nothing = self.space.get_origin_batch(len(x) - count, ops.dtype(good))
        if ops.name == "torch":
            nothing = ops.zeros(nothing.shape, like=good)
        return ops.concatenate([good, nothing], 0)


class BatchForm:
    """The form of batches that a request, `data_specs`, means for the arrays of a provider.

    A source is the name of an array; ``"features"`` is the only data array as well, and
    ``"targets"`` the only label array.  `bind` says how the arrays are stored; before it, only
    `written` can be asked.
    """

    def __init__(
        self,
        data_specs: Any,
        data_names: Sequence[str],
        label_names: Sequence[str],
        field_names: Sequence[str] = (),
    ) -> None:
        self._mapping = DataSpecsMapping(data_specs)
        sources = _sources(data_names, label_names)
        #: Data arrays; those of fields follow them.
        self._num_data = len(data_names)
        sources.update((n, (False, i)) for i, n in enumerate(field_names, self._num_data))
        self._parts: list[_Part] = []
        for space, source in self._mapping.specs_to_index:
            if source not in sources:
                names = ", ".join(map(repr, sources))
                raise SpecError(f"there is no source {source!r}; this provider has {names}")
            self._parts.append(_Part(space, source, *sources[source]))
        self._descriptions: tuple[list[DataDesc], list[DataDesc]] = ([], [])

    @property
    def batch_type(self) -> type[FormBatch]:
        """Class of the batches."""
        return form_type(self._mapping.spec_mapping)

    def written(self, data_shape: Sequence[int]) -> tuple[str, str]:
        """Return axes, as in "CHWN", and element type in which images should be made.

        What the first of several forms needs is written so; the rest are conversions.  Images that
        nobody asks for are written as they come.
        """
        own = range(self._num_data)
        parts = [part for part in self._parts if not part.is_label and part.number in own]
        if not parts:
            return "NCHW", "float32"
        for part in parts:
            part.bind(DataDesc(part.source, (1, *data_shape)))
        candidates = (part.space.layout.axes for part in parts)
        axes = next((axes for axes in candidates if set(axes) == set(IMAGES)), IMAGES)
        return axes.upper().replace("B", "N"), _stage_dtype([part.space.dtype for part in parts])

    def bind(
        self, data: Sequence[Any], label: Sequence[Any]
    ) -> tuple[list[DataDesc], list[DataDesc]]:
        """Learn how the arrays are stored, and describe those of the result."""
        self._descriptions = ([], [])
        for part in self._parts:
            stored = (label if part.is_label else data)[part.number]
            self._descriptions[part.is_label].append(part.bind(stored))
        return self._descriptions

    def parts(
        self,
        data: Sequence[Any],
        label: Sequence[Any],
        count: int,
        to_device: Transfer = list,
        finish: Transfer = list,
    ) -> tuple[list[Any], list[bool]]:
        """Convert the distinct parts of a request, and say which of them are labels.

        Of the samples `count` are not padding.  `to_device` moves arrays to their device, and
        `finish` does there what is left to do with the data.
        """
        early = {
            at: part.convert((label if part.is_label else data)[part.number], count)
            for at, part in enumerate(self._parts)
            if part.on_host
        }
        late = sorted({part.number for part in self._parts if not part.on_host})
        placed = to_device([*(data[number] for number in late), *early.values()])
        moved = dict(zip(late, finish(placed[: len(late)]), strict=True))
        converted = dict(zip(early, placed[len(late) :], strict=True))
        return [
            converted[at] if at in converted else part.convert(moved[part.number], count)
            for at, part in enumerate(self._parts)
        ], [part.is_label for part in self._parts]

    def nest(self, parts: Sequence[Any]) -> Any:
        """The parts in the structure of the request."""
        return self._mapping.nest(tuple(parts))

    def batch(
        self,
        data: Sequence[Any],
        label: Sequence[Any],
        count: int,
        to_device: Transfer = list,
        finish: Transfer = list,
        *,
        pad: int,
        **fields: Any,
    ) -> FormBatch:
        """A batch; parameters as for `parts`, the others are those of `DataBatch`."""
        parts, labels = self.parts(data, label, count, to_device, finish)
        return in_form(
            self.nest(parts),
            size=count + pad,
            pad=pad,
            data=[part for part, is_label in zip(parts, labels, strict=True) if not is_label],
            label=[part for part, is_label in zip(parts, labels, strict=True) if is_label],
            provide_data=self._descriptions[0],
            provide_label=self._descriptions[1],
            **fields,
        )


def _sources(data_names: Sequence[str], label_names: Sequence[str]) -> dict[str, tuple[bool, int]]:
    """Find what can be asked for: by name, True for a label array, and its number."""
    sources = {name: (True, number) for number, name in enumerate(label_names)}
    sources.update((name, (False, number)) for number, name in enumerate(data_names))
    if len(data_names) == 1:
        sources.setdefault("features", (False, 0))
    if len(label_names) == 1:
        sources.setdefault("targets", (True, 0))
    return sources


def _axes(layout: str | None, ndim: int) -> str:
    """Letters for layouts; the only axis beside the batch holds features, whatever its name."""
    if ndim == 3 and (layout is None or len(layout) != 3):
        return "bhw"
    axes = axes_of(layout, ndim)
    if "b" not in axes:
        raise SpecError(f"layout={layout!r} has no axis N for the batch")
    return axes if ndim != 2 else axes.replace(axes.replace("b", ""), "f")


def _stage_dtype(names: Sequence[str | None]) -> str:
    """The type in which the stage loses nothing that was asked for."""
    types = set(names)
    if len(types) == 1:
        (name,) = types
        if name in BATCH_TYPES:
            return name
        if name is not None and "int" in name:
            return "uint8"
    return "float32"
