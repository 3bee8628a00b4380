"""Fields of the images of packs: opened, planned, and described as arrays of a batch.

The image stage makes them; here it is said where they lie, and what a batch or a sample has of
each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from recordio.packs.fields_meta import FieldMeta

from ...core.batch import DataDesc
from ...core.field_specs import (
    Boxes,
    FieldKind,
    Keypoints,
    Objects,
    field_of,
)
from ..plan import RenderPlan
from ..sources.source import Source
from .field import FieldPlan
from .payload_fields import ObjectPlan, PlacePlan, TextPlan, check_width, scan_objects
from .pixel_fields import ImagePlan, ValuePlan

#: Values of a point and, at least, of a row of boxes.
POINT, LEAST_ROW = 3, 5
#: Records that are looked at for the values of an object, if `most` is given.
FEW = 1 << 10


def field_names(specs: Mapping[str, FieldKind], views: int = 0) -> list[tuple[str, str, int]]:
    """Name the fields of a batch: their names there, those of their packs, and their views."""
    names = []
    for name, spec in specs.items():
        alike = views == 0 or spec.same_for_views
        own = [(name, name, 0)] if alike else [(f"{name}{i}", name, i) for i in range(views)]
        names += own
    return names


def array_names(specs: Mapping[str, FieldKind]) -> list[str]:
    """Name the arrays of a batch that come of fields, without views."""
    names = []
    for name, spec in specs.items():
        if spec.is_array:
            names.append(name)
        if isinstance(spec, Objects) and spec.packed:
            names.append(f"{name}_offsets")
    return names


class FieldSource(Protocol):
    """Images that may have fields: a `RecordSource`, or what a provider has instead."""

    @property
    def is_remote(self) -> bool:
        """True if some lie on servers."""

    def field(self, name: str) -> Source:
        """Return what the image stage reads of a field."""


class ImageFields:
    """The fields of the images of a source, as `specs` ask for them; it can be pickled.

    None stands for the kind that the packs say.

    Of detection images, boxes without a pack are those in the labels: `own_objects` is the number
    of values of each and of objects at most.  No field is called as one of those `taken`.  Images
    are so many `arrays` of a batch, by default one for each view.
    """

    def __init__(
        self,
        specs: Mapping[str, FieldKind | None] | None,
        source: FieldSource,
        views: int = 0,
        own_objects: tuple[int, int] | None = None,
        taken: Iterable[str | None] = (),
        arrays: int | None = None,
    ) -> None:
        self.specs: dict[str, FieldKind] = _resolved(specs or {}, source)
        self._source: FieldSource | None = source
        self._names = field_names(self.specs, views)
        self._num_images = arrays or max(views, 1)
        taken = {*taken, "features", "targets"}
        for name in [*array_names(self.specs), *(name for name, *_ in self._names)]:
            if name in taken:
                raise ValueError(f"fields: {name!r} is the name of the images or labels")
        #: Boxes that lie in the labels of the images.
        self._own = {
            name
            for name, spec in self.specs.items()
            if own_objects and isinstance(spec, Boxes) and not _has_field(source, name)
        }
        self._objects: dict[str, tuple[int, int]] = {}
        for name, spec in self.specs.items() if self._sources else ():
            if isinstance(spec, Objects):
                own = own_objects if name in self._own else None
                self._objects[name] = own or self._scanned(name, spec, source)
        self._packed = any(isinstance(s, Objects) and s.packed for s in self.specs.values())

    def __bool__(self) -> bool:
        return bool(self.specs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_sources"}

    @cached_property
    def _sources(self) -> dict[str, Source | None]:
        """Open the packs of the fields."""
        source = self._source
        assert source is not None, "closed"
        return {
            name: source.field(name) if spec.stored and name not in self._own else None
            for name, spec in self.specs.items()
        }

    def _scanned(self, name: str, spec: Objects, source: FieldSource) -> tuple[int, int]:
        """Find the values of an object, and how many there are at most."""
        field = self._sources[name]
        assert field is not None
        if source.is_remote and spec.most is None:
            raise ValueError(
                f"field {name} lies on a server, where not all headers are read: give it most, the "
                "objects of a sample at most"
            )
        least = POINT if isinstance(spec, Keypoints) else LEAST_ROW
        if source.is_remote:
            field.read(0)  # which fetches it
        last = -1 if spec.most is None else 1 if source.is_remote else FEW
        width, most = scan_objects(field, least, last)
        if not most and isinstance(spec, Keypoints) and width % POINT:
            width = 0  # there are none, and what is stated is no width of points
        return width or least, spec.most or max(most, 1)

    def refuse_mosaics(self, recipes: Sequence[Any]) -> None:
        """Refuse fields that cannot be put together as the images of mosaics are."""
        for name, source in self._sources.items():
            if source is None and isinstance(self.specs[name], Boxes):
                continue
            for recipe in recipes:
                if getattr(recipe, "mosaic", 0):
                    raise ValueError(
                        f"mosaic={recipe.mosaic:g} makes one image of four, and only the boxes in "
                        f"the labels of their records come with them: drop mosaic, or field {name}"
                    )

    def refuse_packed(self) -> None:
        """Refuse batches of chosen samples of what has no axis of samples."""
        if self._packed:
            raise ValueError("packed fields have no axis of samples: iterate over the provider")

    @property
    def of_lists(self) -> tuple[str, ...]:
        """The names of the fields of a batch that are no arrays."""
        return tuple(name for name, field, _ in self._names if not self.specs[field].is_array)

    def close(self) -> None:
        """Give up the source, and with it what it holds of files on servers."""
        self._source = None
        self.__dict__.pop("_sources", None)

    def said(self) -> dict[str, FieldMeta]:
        """Return what the packs say of their fields, by name: the first one that does."""
        files = getattr(self._source, "files", ())
        return {name: meta for file in files[::-1] for name, meta in file.fields_meta.items()}

    def kinds(self) -> dict[str, FieldKind]:
        """Return what the fields of a batch are, by name."""
        return {name: kind for name, _, kind in self.named()}

    def named(self) -> list[tuple[str, str, FieldKind]]:
        """Name the fields of a batch: their names there, those of their packs, and their kinds."""
        return [(name, field, self.specs[field]) for name, field, _ in self._names]

    # -- plans and descriptions -------------------------------------------------------------------

    def plans(self, image: RenderPlan) -> list[FieldPlan]:
        """Plan the fields of images that `image` describes."""
        return [self._plan(image, *names) for names in self._names]

    def _plan(self, image: RenderPlan, name: str, field: str, view: int) -> FieldPlan:
        spec: Any = self.specs[field]
        source: Any = self._sources[field]
        own = (image, *image.views)[view]
        if isinstance(spec, Objects):
            plan = ObjectPlan(name, spec, source, view, *self._objects[field])
            if isinstance(spec, Keypoints):
                check_width(plan)
            return plan
        if not spec.is_array:
            return TextPlan(name, spec, source, view)
        if not spec.stored:
            return PlacePlan(name, spec, view)
        if spec.is_values:
            return ValuePlan(name, spec, source, view, own.recipe.data_shape[1:])
        return ImagePlan(name, spec, source, view, own)

    def described(self, image: RenderPlan, slots: int, dtype: Any) -> list[DataDesc]:
        """Describe the arrays of a batch; `dtype` is that of images normalised on a device."""
        described: list[DataDesc] = []
        for plan in self.plans(image):
            spec = plan.spec
            if isinstance(plan, ObjectPlan):
                one = _shape_of_object(plan)
                axes = "NWCK"[: 2 + len(one)] if not spec.packed else None
                shape = (slots, plan.most) if not spec.packed else (slots * plan.most,)
                described.append(DataDesc(plan.name, (*shape, *one), np.float32, axes))
                if spec.packed:
                    described.append(DataDesc(f"{plan.name}_offsets", (slots + 1,), np.int64, None))
            elif isinstance(plan, PlacePlan):
                sides = (slots, plan.values)[: 1 + (plan.values > 1)]
                described.append(DataDesc(plan.name, sides, plan.dtype, "NC"[: len(sides)]))
            elif spec.is_array:
                own = dtype if dtype and spec.is_like_image else plan.dtype
                described.append(DataDesc(plan.name, plan.shape(slots), own, plan.layout))
        return described

    # -- batches ----------------------------------------------------------------------------------

    def arrays(self, data: Sequence[Any], image: RenderPlan) -> list[Any]:
        """Return the arrays of a batch, of what the image stage made."""
        arrays = list(data[: self._num_images])
        for plan, value in zip(self.plans(image), data[self._num_images :], strict=True):
            if plan.spec.is_array:
                arrays += _arrays(plan, value)
        return arrays

    def example(self, plans: Sequence[FieldPlan], values: Sequence[Any]) -> list[Any]:
        """Return the fields of one sample, of what was made for a batch of one.

        Packed objects are those of the sample, and as many as it has.
        """
        sample = []
        for plan, value in zip(plans, values, strict=True):
            first = _arrays(plan, value)[0] if plan.spec.is_array else value
            whole = isinstance(plan, ObjectPlan) and plan.spec.packed
            sample.append(first if whole else first[0])
        return sample

    def lists(self, data: Sequence[Any]) -> dict[str, list[Any]]:
        """Return the fields of a batch that are no arrays, by name."""
        names = (name for name, *_ in self._names)
        values = dict(zip(names, data[self._num_images :], strict=True))
        return {name: values[name] for name in self.of_lists}

    def finish(self, data: Sequence[Any], normalise: Any) -> list[Any]:
        """Normalise the images of a batch on their device, and the fields that are like them."""
        alike = [True] * self._num_images
        for _, field, _ in self._names:
            spec = self.specs[field]
            if spec.is_array:
                alike.append(spec.is_like_image)
            if isinstance(spec, Objects) and spec.packed:
                alike.append(False)
        return [normalise(one) if like else one for one, like in zip(data, alike, strict=True)]


def _resolved(specs: Mapping[str, FieldKind | None], source: FieldSource) -> dict[str, FieldKind]:
    """Put the kinds that packs describe in the place of None."""
    fields_meta = getattr(source, "fields_meta", {}) if None in specs.values() else {}
    return {
        name: field_of(name, fields_meta.get(name)) if spec is None else spec
        for name, spec in specs.items()
    }


def _has_field(source: FieldSource, name: str) -> bool:
    """Return whether a pack beside one of those of the source has that name."""
    return any(name in file.field_names for file in getattr(source, "files", ()))


def _shape_of_object(plan: ObjectPlan) -> tuple[int, ...]:
    width = plan.width_of_object
    return (width // POINT, POINT) if isinstance(plan.spec, Keypoints) else (width,)


def _arrays(plan: FieldPlan, value: Any) -> list[Any]:
    """Return the array of a field, with offsets if it has some, of what the stage made."""
    if isinstance(plan, ObjectPlan):
        return _objects(plan, value)
    if isinstance(plan, PlacePlan):
        array = np.frombuffer(bytearray(b"".join(value)), plan.dtype)
        return [array.reshape(-1, plan.values) if plan.values > 1 else array]
    return [value]


def _objects(plan: ObjectPlan, contents: list[bytes]) -> list[np.ndarray]:
    """Put the objects of all slots into one array, padded or with offsets."""
    shape, width = _shape_of_object(plan), plan.width_of_object
    counts = [len(content) // (4 * width) for content in contents]
    values = np.frombuffer(bytearray(b"".join(contents)), np.float32).reshape(-1, *shape)
    if plan.spec.packed:
        return [values, np.cumsum([0, *counts]).astype(np.int64)]
    padded = np.full((len(contents), plan.most, *shape), -1, np.float32)
    slots = np.repeat(np.arange(len(counts)), counts)
    ranks = np.arange(len(slots)) - np.repeat(np.cumsum(counts) - counts, counts)
    padded[slots, ranks] = values
    return [padded]
